"""From draws of weights to predictions at new inputs.

p(y | x, D) = E_{θ | D} p(y | x, θ) ≈ Σ_i w_i p(y | f(x; θ_i), φ_i)
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float

from weightscape.core.checks import require, require_count, require_type
from weightscape.draws import Draws, draw_weights
from weightscape.predictive.components import flat_own
from weightscape.predictive.inputs import network_inputs
from weightscape.predictive.mixture import Mixture
from weightscape.predictive.outputs import Recomputed, hold
from weightscape.predictive.plan import DEFAULT_MEMORY, make_plan
from weightscape.predictive.predictive import Predictive
from weightscape.predictive.units import Units


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
    outputs = _outputs(draws, network_inputs(x, draws.example.x, draws.scaling, caller="predict"), memory)
    weights = draw_weights(draws).reshape(-1)
    missing = outputs.plan.padded_draws - len(draws)
    mixture = Mixture(
        draws.model.likelihood,
        hold(outputs) if outputs.plan.fits else outputs,
        flat_own(draws, outputs.plan.padded_draws),
        jnp.asarray(np.pad(weights, (0, missing)), outputs.x.dtype),
    )
    return Predictive(mixture, Units(draws.scaling, draws.example.y))


def _outputs(draws: Draws, x: Float[np.ndarray, "point ..."], memory: int) -> Recomputed:
    params = draws.params.network
    one_draw = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[2:], leaf.dtype), params)
    plan = make_plan(draws.model.network, one_draw, x, num_draws=len(draws), memory=memory)
    return Recomputed(plan, draws.model.network, params, x)
