"""The divergence of a velocity field, exactly or by probes.

    div v = Σ_i ∂v_i/∂x_i = tr J = E[εᵀ J ε]      for ε with E[ε εᵀ] = 1

The exact trace takes one product J e_i for each weight; products run in vectorised chunks, so that memory is bounded.
Hutchinson's estimate takes one product for each probe ε and is unbiased, with a variance of 2 ‖offdiag (J + Jᵀ)/2‖² for
signs. Its noise biases importance weights by e^{σ²/2}: evidence and efficiency need the exact one.

Reference: Hutchinson (1989); Grathwohl et al. (2019), FFJORD, for its use in flows.
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core import registered
from weightscape.core.checks import require_count
from weightscape.core.types import PRNGKey

Field = Callable[[Float[Array, " weight"]], Float[Array, " weight"]]


class Divergence(eqx.Module):
    """A way to take divergences: `probes` once for each draw, then `of` as often as needed."""

    @abc.abstractmethod
    def probes(self, key: PRNGKey, like: Float[Array, " weight"]) -> Float[Array, "probe weight"]:
        """What is drawn once and kept along the way of a draw."""

    @abc.abstractmethod
    def of(
        self, field: Field, x: Float[Array, " weight"], probes: Float[Array, "probe weight"]
    ) -> Float[Array, " estimate"]:
        """The divergence at x: one exact value, or one estimate for each probe."""


@registered("flow.Exact")
class Exact(Divergence):
    """The trace of the Jacobian.

    - `chunk_size`: how many products at once; memory grows with it, and time falls until the device is full.
    - `precision`: of the products, where a device has several.
    """

    chunk_size: int = eqx.field(static=True, default=128)
    precision: str = eqx.field(static=True, default="tensorfloat32")

    def __check_init__(self) -> None:
        require_count("`chunk_size` of Exact", self.chunk_size)

    def probes(self, key: PRNGKey, like: Float[Array, " weight"]) -> Float[Array, "probe weight"]:
        del key
        return jnp.zeros((0, len(like)), like.dtype)

    def of(
        self, field: Field, x: Float[Array, " weight"], probes: Float[Array, "probe weight"]
    ) -> Float[Array, " estimate"]:
        with jax.default_matmul_precision(self.precision):
            _, product = jax.linearize(field, x)
        entry = lambda i: product(jnp.zeros_like(x).at[i].set(1.0))[i]
        entries = jax.lax.map(entry, jnp.arange(len(x)), batch_size=min(self.chunk_size, len(x)))
        return jnp.sum(entries)[None]


@registered("flow.Hutchinson")
class Hutchinson(Divergence):
    """εᵀ J ε for random signs ε, the same along the whole way.

    - `num_probes`: how many. Their spread tells the error.
    """

    num_probes: int = eqx.field(static=True, default=8)

    def __check_init__(self) -> None:
        require_count("`num_probes` of Hutchinson", self.num_probes)

    def probes(self, key: PRNGKey, like: Float[Array, " weight"]) -> Float[Array, "probe weight"]:
        return jax.random.rademacher(key, (self.num_probes, len(like)), like.dtype)

    def of(
        self, field: Field, x: Float[Array, " weight"], probes: Float[Array, "probe weight"]
    ) -> Float[Array, " estimate"]:
        _, product = jax.linearize(field, x)
        return jax.vmap(lambda probe: jnp.vdot(probe, product(probe)))(probes)
