"""Steps of a path that is gone with noise: their times, and the normals that they draw from (`diffusion`)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.types import Scalar
from weightscape.flow.paths import Path
from weightscape.flow.transport import bent


class Step(NamedTuple):
    """t, b and the size σ of the path's points at a step, and the ρ and λ that lead there."""

    time: Scalar
    b: Scalar
    size: Scalar
    kept: Scalar
    lost: Scalar


class Kernel(NamedTuple):
    """The normal that a step draws from, with `shift` from m and `variance` v, and what the source alone would do."""

    middle: Float[Array, " weight"]
    shift: Float[Array, " weight"]
    variance: Float[Array, " weight"]
    lost: Scalar

    def point(self, noise: Float[Array, " weight"]) -> Float[Array, " weight"]:
        """The draw that standard-normal noise makes."""
        return self.middle + self.shift + jnp.sqrt(self.variance) * noise

    def log_ratio(self, x: Float[Array, " weight"]) -> Scalar:
        """log F(x) − log N(x; m, λ)."""
        away = x - self.middle
        terms = jnp.log(self.lost / self.variance) + away**2 / self.lost - (away - self.shift) ** 2 / self.variance
        return 0.5 * jnp.sum(terms)


def noisy_steps(path: Path, num_steps: int, bend: Scalar, last: Scalar | float, dtype: jnp.dtype) -> Step:
    """All steps from time 0 to `last`, one after the other; with a `bend` above 0 they shorten on the way."""
    s = jnp.arange(1, num_steps + 1, dtype=dtype) / num_steps
    times = (last * bent(s, bend)).astype(dtype)
    at = jax.vmap(path.coefficients)(times)
    sizes = jnp.sqrt(at.a**2 + at.b**2)
    b = at.b / sizes
    kept = jnp.concatenate([jnp.zeros((1,), dtype), b[:-1]]) / b
    return Step(times, b, sizes, kept, 1 - kept**2)
