"""A mixture of predictives, of whatever models and methods they came from.

    p(y | x) = Σ_k w_k p_k(y | x),        Σ_k w_k = 1

    E[y] = Σ_k w_k E_k[y],        Var[y] = Σ_k w_k aleatoric_k  +  Σ_k w_k (epistemic_k + (E_k[y] − E[y])²)
    H[p̄] = Σ_k w_k E_k[H]  +  the rest, which is epistemic

So what models disagree about counts as doubt that more data would remove. Networks, noise and scalings may differ.
"""

from collections.abc import Sequence
from typing import cast

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float

from weightscape.core.checks import require, require_type, shape_of
from weightscape.core.shares import normalised_shares
from weightscape.data import Scaling
from weightscape.likelihoods import NO_OWN, Categorical
from weightscape.predictive.classification import classes
from weightscape.predictive.links.link import one_component
from weightscape.predictive.marginal import RegressionDensity
from weightscape.predictive.mixed_densities import MixedClasses, MixedNumbers, Part
from weightscape.predictive.mixture import Mixture
from weightscape.predictive.outputs import Held, pad_rows
from weightscape.predictive.plan import make_held_plan
from weightscape.predictive.predictive import Predictive


def mix(predictives: Sequence[Predictive], weights: ArrayLike | list) -> Predictive:
    """The mixture of predictives of the same targets at the same inputs.

    Arguments:
        predictives: from `predict` or `predict_linearised`, for the same points.
        weights: w, not negative; they are divided by their sum. `evaluate.stacking_weights` finds good ones.

    The outputs of all draws at all points are held in memory. Samples of a regression are drawn point by point.

    Example:
    >>> both = mix([predict(hmc, x), predict(ensemble, x)], [0.7, 0.3])         # doctest: +SKIP

    """
    shares = _checked(predictives, weights)
    kept = [(one, share) for one, share in zip(predictives, shares, strict=True) if share > 0]
    if predictives[0].task == "classification":
        return Predictive(_mixed_classes(kept), predictives[0].units)
    return Predictive(_mixed_numbers(kept), kept[0][0].units)


def _checked(predictives: Sequence[Predictive], weights: ArrayLike | list) -> Float[np.ndarray, " model"]:
    """The weights, divided by their sum."""
    require(len(predictives) > 0, "`predictives` of mix must hold at least one", 0, "Pass `[predict(draws, x), …]`.")
    for one in predictives:
        asked = "`predictives` of mix must be Predictives"
        require_type(isinstance(one, Predictive), asked, type(one).__name__, "Pass `[predict(draws, x), …]`.")
    kinds = {(one.task, one.num_points, shape_of(one.units.example_y)[1:]) for one in predictives}
    remedy = "Predict the same targets at the same inputs."
    require(len(kinds) == 1, "Predictives of mix must be of one task and the same points", kinds, remedy)
    return normalised_shares("`weights` of mix", weights, len(predictives))


def _mixed_numbers(pairs: list[tuple[Predictive, float]]) -> Mixture:
    """One component, whose outputs at a point are those of all draws of all parts, one after another."""
    first, parts, rows = pairs[0][0].units.scaling, [], []
    for one, share in pairs:
        mixture, outputs = one.mixture, _all_outputs(one.mixture)
        likelihood = cast(RegressionDensity, mixture.likelihood)  # the task says so
        weight, scaling = jnp.asarray(share, mixture.weights.dtype), _between(first, one.units.scaling)
        parts.append(Part(likelihood, mixture.own, mixture.weights, weight, scaling, outputs.shape[2]))
        rows.append(np.moveaxis(outputs, 0, 1).reshape(one.num_points, -1))
    return one_component(MixedNumbers(tuple(parts)), jnp.asarray(np.concatenate(rows, axis=1)), NO_OWN)


def _between(first: Scaling | None, second: Scaling | None) -> Scaling:
    """From targets as the first likelihood sees them to targets as the second does."""
    (mean, scale), (other_mean, other_scale) = _target_moments(first), _target_moments(second)
    return Scaling(0.0, 1.0, (other_mean - mean) / scale, other_scale / scale)


def _target_moments(scaling: Scaling | None) -> tuple[np.ndarray, np.ndarray]:
    if scaling is None or scaling.y_mean is None or scaling.y_scale is None:
        return np.zeros(()), np.ones(())
    return np.asarray(scaling.y_mean, np.float64), np.asarray(scaling.y_scale, np.float64)


def _all_outputs(mixture: Mixture) -> Float[np.ndarray, "draw point output"]:
    unpadded = lambda points, outputs: np.asarray(outputs)[:, : points.stop - points.start]
    return np.concatenate([unpadded(*chunk) for chunk in mixture.outputs.chunks()], axis=1)


def _mixed_classes(pairs: list[tuple[Predictive, float]]) -> Mixture:
    """One component for each predictive."""
    found = [one.mixture.summarise(classes) for one, _ in pairs]
    widths = {each.probabilities.shape[1] for each in found}
    require(len(widths) == 1, "Predictives of mix must have the same classes", sorted(widths), "Mix those that do.")
    splits = all(each.expected_entropy is not None for each in found)
    logs = [MixedClasses.outputs_of(each.probabilities, each.expected_entropy if splits else None) for each in found]
    outputs = np.stack([np.asarray(each) for each in logs])
    shares = jnp.asarray([share for _, share in pairs], outputs.dtype)
    return Mixture(MixedClasses(Categorical(widths.pop()), splits), _held(outputs), NO_OWN, shares)


def _held(outputs: Float[np.ndarray, "draw point output"]) -> Held:
    num_components, num_points, _ = outputs.shape
    plan = make_held_plan(num_points)._replace(num_draws=num_components)
    padded = lambda points: np.moveaxis(pad_rows(np.moveaxis(outputs[:, points], 1, 0), plan.chunk_size), 0, 1)
    return Held(plan, tuple(jnp.asarray(padded(points)) for points in plan.chunks))
