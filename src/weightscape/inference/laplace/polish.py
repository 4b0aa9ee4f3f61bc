"""From near a mode to the mode: quasi-Newton steps with all data.

Adam ends near a mode, not at it: on badly conditioned posteriors some standard deviations away, where Laplace's
evidence is tens of nats off. L-BFGS goes the rest of the way, or says how far it came (`distance_to_mode`).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from weightscape.core import Scalar
from weightscape.core.layout import Layout
from weightscape.posterior import Position, Posterior

_MEMORY = 30


def polished(posterior: Posterior, position: Position, num_steps: int) -> Position:
    """The position after at most `num_steps` steps of L-BFGS, never of lower density."""
    layout = Layout.of(position)
    start = np.asarray(layout.flatten(position), np.float64)

    def loss(vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _loss(posterior, layout, jnp.asarray(vector, layout.dtype))
        return float(value), np.asarray(gradient, np.float64)

    # The last digits of a sum over many points are noise: a smaller change of it says nothing.
    enough = 10 * float(jnp.finfo(layout.dtype).eps)
    options = {"maxiter": num_steps, "maxfun": 2 * num_steps, "maxcor": _MEMORY, "ftol": enough, "gtol": 1e-9}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    is_better = np.isfinite(found.fun) and found.fun <= loss(start)[0]
    return layout.unflatten(jnp.asarray(found.x, layout.dtype)) if is_better else position


@eqx.filter_jit
def _loss(
    posterior: Posterior, layout: Layout, vector: Float[Array, " weight"]
) -> tuple[Scalar, Float[Array, " weight"]]:
    return jax.value_and_grad(lambda v: -posterior.log_density(layout.unflatten(v)))(vector)
