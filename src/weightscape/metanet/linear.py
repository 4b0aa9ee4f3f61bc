"""Linear maps of channels, one for each slot: only slot 0, which no sign changes, may have a shift."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.types import PRNGKey

Slots = tuple[Float[Array, "..."], ...]
"""Features by slot; in each the last axis is that of channels."""


class Linear(eqx.Module):
    """y = x W + b along the last axis."""

    weight: Float[Array, "input output"]
    bias: Float[Array, " output"] | None

    @staticmethod
    def of(key: PRNGKey, num_inputs: int, num_outputs: int, *, bias: bool = True) -> "Linear":
        """W ~ N(0, 1/inputs), b = 0."""
        weight = jax.random.normal(key, (num_inputs, num_outputs)) / max(num_inputs, 1) ** 0.5
        return Linear(weight, jnp.zeros((num_outputs,)) if bias else None)

    @staticmethod
    def zero(num_inputs: int, num_outputs: int, *, bias: bool = True) -> "Linear":
        """W = 0, b = 0."""
        return Linear(jnp.zeros((num_inputs, num_outputs)), jnp.zeros((num_outputs,)) if bias else None)

    def __call__(self, x: Float[Array, "... input"]) -> Float[Array, "... output"]:
        """The outputs."""
        y = x @ self.weight
        return y if self.bias is None else y + along_last(self.bias, y)


class SlotLinear(eqx.Module):
    """A linear map for each slot."""

    parts: tuple[Linear, ...]

    @staticmethod
    def of(key: PRNGKey, num_slots: int, num_inputs: int, num_outputs: int) -> "SlotLinear":
        """Random maps; slot 0 has a shift, 0 at first."""
        keys = jax.random.split(key, num_slots)
        return SlotLinear(
            tuple(Linear.of(keys[i], num_inputs, num_outputs, bias=i == 0) for i in range(num_slots)),
        )

    def __call__(self, x: Slots) -> Slots:
        """The outputs, by slot."""
        return tuple(part(each) for part, each in zip(self.parts, x, strict=True))


def along_last(vector: Float[Array, " channel"], like: Float[Array, "..."]) -> Float[Array, "..."]:
    """A vector as an array of the same rank that varies along the last axis: ranks are never promoted."""
    return vector.reshape((1,) * (like.ndim - 1) + vector.shape)
