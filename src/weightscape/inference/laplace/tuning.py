"""Prior scales and noise chosen by the evidence: empirical Bayes by Laplace's approximation.

    ψ* = argmax_ψ log p(D | ψ),      ψ: log-scales of the prior (one, or one a layer) and of the noise

After training, with the mode held (`rounds=1`), or during it: train, choose ψ, train on, and so on (`rounds` > 1).
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from weightscape.core import InputError, Scalar, registered
from weightscape.core.checks import require, require_count, require_known
from weightscape.core.layout import Layout, layer_of
from weightscape.inference.laplace.information import Information
from weightscape.inference.laplace.marginal import LaplaceEvidence, one_noise
from weightscape.likelihoods import Gaussian
from weightscape.posterior import Posterior
from weightscape.priors import FanInNormal, Normal, Prior

_BOUND = 7.0
"""Scales may change by a factor of e^7 a round: beyond it a weight is pruned or free for all purposes."""


@registered("inference.EvidenceTuning")
class EvidenceTuning(eqx.Module):
    """What the evidence chooses.

    - `prior`: "global" for one factor on all scales of the prior, "by_layer" for one a layer, None for none.
    - `noise`: whether the fixed noise of a Gaussian likelihood is chosen too.
    - `rounds`: how often to train and choose; 1 chooses after training.
    """

    prior: str | None = eqx.field(static=True, default="global")
    noise: bool = eqx.field(static=True, default=False)
    rounds: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        require_count("`rounds` of EvidenceTuning", self.rounds)
        if self.prior is not None:
            require_known("`prior` of EvidenceTuning", self.prior, ("global", "by_layer"))
        some = self.prior is not None or self.noise
        require(some, "EvidenceTuning must choose something", "neither prior nor noise", "Name one.")


class Tuned(NamedTuple):
    """The posterior with the chosen scales, the information under its noise, and the factors by name."""

    posterior: Posterior
    information: Information
    factors: dict[str, float]


def tune(evidence: LaplaceEvidence, tuning: EvidenceTuning) -> Tuned:
    """The scales of largest evidence, with the mode held."""
    scaling = _scaling(evidence, tuning)

    def loss(log_factors: np.ndarray) -> list[np.ndarray]:
        found = _loss(evidence, scaling, jnp.asarray(log_factors, evidence.around.location.dtype))
        return [np.asarray(part, np.float64) for part in found]

    bounds = [(-_BOUND, _BOUND)] * len(scaling.names)
    found = minimize(loss, np.zeros(len(bounds)), jac=True, method="L-BFGS-B", bounds=bounds)
    finite = bool(np.isfinite(found.fun))
    require(finite, "The evidence must be finite where it is largest", found.fun, "Fix the prior's scale instead.")
    chosen = scaling(evidence, jnp.asarray(found.x, evidence.around.location.dtype))
    factors = {name: float(np.exp(t)) for name, t in zip(scaling.names, found.x, strict=True)}
    return Tuned(chosen.around.posterior, chosen.information, factors)


class _Scaling(eqx.Module):
    """How factors change the scales of prior and noise; it holds no numbers, so a new round compiles nothing.

    - `names`: of the factors.  `factor_of`: which one each leaf of the network takes; empty where the prior stays.
    - `noise`: whether the last factor is the noise's.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    factor_of: tuple[int, ...] = eqx.field(static=True)
    noise: bool = eqx.field(static=True)

    def __call__(self, evidence: LaplaceEvidence, log_factors: Float[Array, " factor"]) -> LaplaceEvidence:
        """The evidence with its scales multiplied by exp(log_factors)."""
        model, factors = evidence.around.posterior.model, jnp.exp(log_factors)
        prior, likelihood = model.prior, None
        if self.factor_of:
            assert isinstance(prior, (Normal, FanInNormal))
            leaves, structure = jax.tree.flatten(prior.scales(evidence.around.parameters().network))
            scaled = [leaf * factors[i] for leaf, i in zip(leaves, self.factor_of, strict=True)]
            prior = Normal(jax.tree.unflatten(structure, scaled))
        if self.noise:
            likelihood = Gaussian(one_noise(model.likelihood) * factors[-1])
        return evidence.under(prior, likelihood)


@eqx.filter_jit
def _loss(
    evidence: LaplaceEvidence, scaling: _Scaling, log_factors: Float[Array, " factor"]
) -> tuple[Scalar, Float[Array, " factor"]]:
    return jax.value_and_grad(lambda t: -scaling(evidence, t).value())(log_factors)


def _scaling(evidence: LaplaceEvidence, tuning: EvidenceTuning) -> _Scaling:
    model, params = evidence.around.posterior.model, jax.eval_shape(evidence.around.parameters).network
    names, factor_of = _prior_choices(model.prior, Layout.of(params).paths, tuning.prior)
    if tuning.noise:
        one_noise(model.likelihood)  # raises where there is none to tune
        names = [*names, "noise"]
    return _Scaling(tuple(names), tuple(factor_of), tuning.noise)


def _prior_choices(prior: Prior, paths: tuple[str, ...], choice: str | None) -> tuple[list[str], list[int]]:
    """Names of the prior's factors, and for each leaf of the network which one it takes."""
    if choice is None:
        return [], []
    if not isinstance(prior, (Normal, FanInNormal)):
        came, remedy = type(prior).__name__, "Use Normal or FanInNormal, or tune the noise alone."
        raise InputError(f"A prior that is tuned must be a normal one, got {came}. {remedy}")
    if choice == "global":
        return ["prior"], [0] * len(paths)
    layers = list(dict.fromkeys(layer_of(path) for path in paths))
    return [f"prior of {name}" for name in layers], [layers.index(layer_of(path)) for path in paths]
