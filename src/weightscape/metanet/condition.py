"""What every block of a metanet is told besides the weights: the time of a flow, and a context.

    c = silu(c0 + T φ(t) + U context),      φ(t) = (t, cos ω_k t, sin ω_k t),   T a small network

with frequencies ω_k spread geometrically from π/2, a quarter of a turn over the unit interval, to 4π. Faster ones let a
field be rough in time, which costs a solver steps and gains no loss.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.checks import require
from weightscape.core.types import PRNGKey
from weightscape.metanet.linear import Linear

_FREQUENCIES = np.pi * np.geomspace(0.5, 4.0, 8)


class Condition(eqx.Module):
    """Makes the vector that conditions the blocks.

    - `context_size`: the length of the context vector; 0 for none.
    """

    constant: Float[Array, " channel"]
    time_in: Linear | None
    time_out: Linear | None
    context: Linear | None
    context_size: int = eqx.field(static=True)

    @staticmethod
    def of(key: PRNGKey, width: int, *, timed: bool, context_size: int) -> "Condition":
        """A random one of `width` channels."""
        key_constant, key_in, key_out, key_context = jax.random.split(key, 4)
        return Condition(
            jax.random.normal(key_constant, (width,)),
            Linear.of(key_in, 1 + 2 * len(_FREQUENCIES), width) if timed else None,
            Linear.of(key_out, width, width) if timed else None,
            Linear.of(key_context, context_size, width, bias=False) if context_size else None,
            context_size,
        )

    def __call__(self, time: Float[Array, ""] | None, context: Float[Array, " context"] | None) -> Array:
        """The condition; time is left out where the metanet has none."""
        came = 0 if context is None else jnp.shape(context)[-1]
        asked = f"The context of this metanet must have {self.context_size} entries"
        require(came == self.context_size, asked, came, "Pass `context` of the size that `Sizes.context_size` gives.")
        total = self.constant
        if time is not None and self.time_in is not None and self.time_out is not None:
            total = total + self.time_out(jax.nn.silu(self.time_in(_time_features(time, total.dtype))))
        if context is not None and self.context is not None:
            total = total + self.context(context)
        return jax.nn.silu(total)


def _time_features(time: Float[Array, ""], dtype: jnp.dtype) -> Float[Array, " feature"]:
    time = jnp.asarray(time, dtype)
    angles = jnp.asarray(_FREQUENCIES, dtype) * time
    return jnp.concatenate([time[None], jnp.cos(angles), jnp.sin(angles)])
