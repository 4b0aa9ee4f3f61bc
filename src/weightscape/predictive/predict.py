"""From draws of weights to predictions at new inputs.

p(y | x, D) = E_{θ | D} p(y | x, θ) ≈ Σ_i w_i p(y | f(x; θ_i), φ_i)
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from weightscape.core.checks import require, require_count, require_finite, require_type, shape_of
from weightscape.draws import Draws
from weightscape.predictive.components import flat_own, mixture_weights
from weightscape.predictive.mixture import Mixture
from weightscape.predictive.outputs import Recomputed, hold
from weightscape.predictive.plan import make_plan
from weightscape.predictive.predictive import Predictive
from weightscape.predictive.units import Units

DEFAULT_MEMORY = 512 * 2**20


def predict(draws: Draws, x: ArrayLike | list, *, memory: int = DEFAULT_MEMORY) -> Predictive:
    """The predictive distribution at the inputs `x`, averaged over all draws.

    Arguments:
        draws: from any method; their `log_weights`, where they have some, weigh them.
        x: inputs in original units, shaped as in training.
        memory: bytes to spend. Where the outputs of all draws at all points fit, they are kept; otherwise every
            summary runs the networks again, chunk by chunk. The results are the same to rounding.

    Example:
    >>> predictive = predict(draws, data.test.x)                # doctest: +SKIP
    >>> lower, upper = predictive.interval(0.9)                 # doctest: +SKIP

    """
    remedy = "Pass what `method.run` or `approximation.sample(key, n)` returns."
    require_type(isinstance(draws, Draws), "`draws` of predict must be Draws", type(draws).__name__, remedy)
    require(len(draws) > 0, "`draws` of predict must hold at least one draw", 0, remedy)
    require_count("`memory` of predict", memory)
    outputs = _outputs(draws, _network_inputs(draws, _check_inputs(x, draws.example.x)), memory)
    weights = mixture_weights(draws)
    missing = outputs.plan.padded_draws - len(draws)
    mixture = Mixture(
        draws.model.likelihood,
        hold(outputs) if outputs.plan.fits else outputs,
        flat_own(draws, outputs.plan.padded_draws),
        jnp.asarray(np.pad(weights, (0, missing)), outputs.x.dtype),
    )
    return Predictive(mixture, Units(draws.scaling, draws.example.y))


def _check_inputs(x: ArrayLike | list, like: Float[Array, "example ..."]) -> Float[Array, "point ..."]:
    inputs = np.asarray(x)
    remedy = "Pass numbers; the loaders of `weightscape.data` encode text columns."
    require_type(inputs.dtype.kind in "fiub", "`x` of predict must hold numbers", f"type {inputs.dtype}", remedy)
    wanted = shape_of(like)[1:]
    asked = f"`x` of predict must have shape (point, {', '.join(str(size) for size in wanted)})"
    remedy = "Pass the same inputs as in training; for one point or one column, `x.reshape(-1, number of columns)`."
    require(shape_of(inputs)[1:] == wanted and inputs.ndim == like.ndim, asked, shape_of(inputs), remedy)
    require(len(inputs) > 0, "`x` of predict must hold at least one point", shape_of(inputs), "Pass some inputs.")
    require_finite("`x` of predict", inputs)
    return jnp.asarray(inputs, like.dtype)


def _network_inputs(draws: Draws, x: Float[Array, "point ..."]) -> Float[np.ndarray, "point ..."]:
    """Inputs as the network sees them, on the host, where they are cut into chunks."""
    return np.asarray(x if draws.scaling is None else draws.scaling.inputs(x))


def _outputs(draws: Draws, x: Float[np.ndarray, "point ..."], memory: int) -> Recomputed:
    params = draws.params.network
    one_draw = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[2:], leaf.dtype), params)
    plan = make_plan(draws.model.network, one_draw, x, num_draws=len(draws), memory=memory)
    return Recomputed(plan, draws.model.network, params, x)
