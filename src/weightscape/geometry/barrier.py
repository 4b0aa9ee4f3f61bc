"""The barrier: how far the loss rises along a path above what its ends would suggest.

    barrier = max_t loss(w_t) − ((1 − t) loss(w_0) + t loss(w_1))

It is 0 along every straight line of a convex loss, and never negative. (Frankle et al. 2020; Entezari et al. 2022.)
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.checks import require_count
from weightscape.core.types import Scalar, Tree
from weightscape.geometry.paths import Path


class Barrier(NamedTuple):
    """`value` is reached at time `at`; `losses` are those of the path at `times`."""

    value: Scalar
    at: Scalar
    times: Float[Array, " time"]
    losses: Float[Array, " time"]


def barrier(path: Path, loss: Callable[[Tree], Scalar], *, num_points: int = 25) -> Barrier:
    """The barrier along a path.

    - `loss`: any function of the weights, such as `loss_of(posterior)`; smaller is better.
    - `num_points`: how many times there are, both ends among them; one network is evaluated at a time.

    Example:
    >>> from weightscape.geometry.paths import Linear
    >>> well = lambda w: (w**2 - 1) ** 2
    >>> float(barrier(Linear(jnp.array(-1.0), jnp.array(1.0)), well).value)
    1.0
    """
    require_count("`num_points` of barrier", num_points, least=2)
    return _barrier(path, loss, num_points)


@eqx.filter_jit
def _barrier(path: Path, loss: Callable[[Tree], Scalar], num_points: int) -> Barrier:
    times = jnp.linspace(0.0, 1.0, num_points)
    losses = jax.lax.map(lambda t: loss(path.at(t)), times)
    # In this form the line meets its ends exactly, so that rounding leaves no barrier there.
    above = losses - ((1 - times) * losses[0] + times * losses[-1])
    highest = jnp.argmax(above)
    return Barrier(above[highest], times[highest], times, losses)
