"""Pre-normalisation, shifted and scaled by the condition, and the gate after a layer.

    n(x) = (1 + a(c)) · x / √(1 + mean x²) + b(c)      before a layer
    x + g(c) · layer(n(x))                             after it

with the mean over channels and a, b, g linear in the condition c, 0 at first: every block starts as the identity
(Peebles & Xie 2023, adaLN-Zero). The 1 under the root keeps small features small, so that the size of a weight that is
its edge's only feature is not lost, and the map is smooth everywhere. Charged slots have no shift b.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.metanet.linear import Linear, Slots, along_last


class Residual(eqx.Module):
    """Normalisation before a layer and the gate after it, for each slot."""

    condition: Linear
    num_slots: int = eqx.field(static=True)
    width: int = eqx.field(static=True)

    @staticmethod
    def of(condition_size: int, num_slots: int, width: int) -> "Residual":
        """One that closes the gate for every condition."""
        return Residual(Linear.zero(condition_size, width * (2 * num_slots + 1)), num_slots, width)

    def before(self, condition: Float[Array, " condition"], x: Slots) -> Slots:
        """The normalised features."""
        factors, _, shift = self._numbers(condition)
        scaled = [normalised(each) * along_last(1 + a, each) for each, a in zip(x, factors, strict=True)]
        return (scaled[0] + along_last(shift, scaled[0]), *scaled[1:])

    def after(self, condition: Float[Array, " condition"], x: Slots, change: Slots) -> Slots:
        """The features with the layer's outputs added."""
        _, gates, _ = self._numbers(condition)
        return tuple(old + along_last(g, new) * new for old, new, g in zip(x, change, gates, strict=True))

    def _numbers(self, condition: Float[Array, " condition"]) -> tuple[Array, Array, Array]:
        rows = self.condition(condition).reshape(2 * self.num_slots + 1, self.width)
        return rows[: self.num_slots], rows[self.num_slots : -1], rows[-1]


def normalised(x: Float[Array, "... channel"]) -> Float[Array, "... channel"]:
    """x / √(1 + mean x²), the mean in single precision or better."""
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    return (wide * jax.lax.rsqrt(1 + jnp.mean(wide**2, axis=-1, keepdims=True))).astype(x.dtype)
