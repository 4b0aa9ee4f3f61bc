"""TrainingRange: where the training inputs were, so that a prediction elsewhere can say so.

A row is outside when any of its inputs lies beyond the smallest or largest training value by more than 5 % of
their span. This is a test of single inputs: a row inside every range can still be a combination that was
never seen, and only the epistemic uncertainty speaks about that.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float

from weightscape.core.config import registered

_MARGIN = 0.05


def _floats(value: ArrayLike) -> Array:
    return jnp.asarray(value, jnp.result_type(float))


@registered("data.TrainingRange")
class TrainingRange(eqx.Module):
    """The smallest and largest training value of every input.

    Arguments:
        low, high: arrays of the shape of one input row.
        names: names of the input columns for messages; empty for images.

    """

    low: Float[Array, "*input"] = eqx.field(converter=_floats)
    high: Float[Array, "*input"] = eqx.field(converter=_floats)
    names: tuple[str, ...] = eqx.field(static=True, default=())

    @staticmethod
    def fit(x: Float[Array, "point *input"], names: tuple[str, ...] = ()) -> "TrainingRange":
        """The range of these training inputs."""
        return TrainingRange(jnp.min(x, axis=0), jnp.max(x, axis=0), names)

    def outside(self, x: Float[Array, "point *input"]) -> Bool[Array, " point"]:
        """True for rows with any input outside its range."""
        return jnp.any(self._beyond(x).reshape(len(x), -1), axis=1)

    def reasons(self, x: Float[Array, "point *input"]) -> list[str]:
        """For each row its first input outside the range, in words; empty for rows inside."""
        beyond = np.asarray(self._beyond(x)).reshape(len(x), -1)
        rows = np.asarray(x).reshape(len(x), -1)
        return [self._reason(row, flags) for row, flags in zip(rows, beyond, strict=True)]

    def _beyond(self, x: Array) -> Array:
        margin = _MARGIN * (self.high - self.low)
        return (x < (self.low - margin)[None]) | (x > (self.high + margin)[None])

    def _reason(self, row: np.ndarray, flags: np.ndarray) -> str:
        if not flags.any():
            return ""
        i = int(np.argmax(flags))
        name = self.names[i] if self.names else f"input {i}"
        low, high = float(self.low.ravel()[i]), float(self.high.ravel()[i])
        return f"{name} = {row[i]:.6g} lies outside the training range {low:.6g} to {high:.6g}"
