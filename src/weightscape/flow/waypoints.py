"""Points of a flow's way at given times, from where it starts at time 0."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from weightscape.core.checks import require
from weightscape.flow.transport import Solver, Velocity


def carry_with_path(
    solver: Solver, velocity: Velocity, x: Float[Array, " weight"], times: Float[Array, " time"]
) -> Float[Array, "time weight"]:
    """The points at several times, of the path through x at time 0."""

    def onwards(x: Array, interval: tuple[Array, Array]) -> tuple[Array, Array]:
        first, last = interval
        moved = jnp.where(last > first, solver.solve(velocity, x, first=first, last=jnp.maximum(last, first + 1e-6)), x)
        return moved, moved

    starts = jnp.concatenate([jnp.zeros((1,), times.dtype), times[:-1]])
    return jax.lax.scan(onwards, x, (starts, times))[1]


def require_times(times: Any) -> None:
    """Raise unless concrete times of a way increase from 0 to 1."""
    if not isinstance(times, Tracer):
        known = np.asarray(times)
        fits = known.ndim == 1 and bool(np.all(np.diff(known) >= 0) and np.all((known >= 0) & (known <= 1)))
        require(fits, "`times` must be in a row, increase and lie in [0, 1]", known, "Pass `linspace(0, 1, 9)`, say.")
