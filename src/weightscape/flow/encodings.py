"""How a velocity field is shown what is known about a network: numbers of order one, and zeros where nothing is known.

    e(c) = one-hot c                          of a label
    e(y) = (1, (y − mean) / deviation)        of a property, with the mean and deviation of the training networks
    ∅ = 0                                     nothing known; no label and no property is shown so

Encoding is done on the host, in double precision, so that a large mean takes no digits from what differs.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from weightscape.core.checks import require, require_finite, require_type
from weightscape.core.types import Scalar

Values = Shaped[np.ndarray, " network"]
"""What is known of each network: labels or numbers."""


class Encoding(eqx.Module):
    """From what is known to the context that a field is told; fitted to training networks."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """The length of a context."""

    @abc.abstractmethod
    def contexts(self, values: Values) -> Float[np.ndarray, "network context"]:
        """The contexts of networks."""

    @abc.abstractmethod
    def require_seen(self, value: Shaped[np.ndarray, ""]) -> None:
        """Raise where training has seen no networks of this kind."""


class OneHot(Encoding):
    """A one in the place of the label."""

    num_labels: int = eqx.field(static=True)

    @property
    def size(self) -> int:
        return self.num_labels

    def contexts(self, values: Values) -> Float[np.ndarray, "network context"]:
        return np.eye(self.num_labels)[values]

    def require_seen(self, value: Shaped[np.ndarray, ""]) -> None:
        require_labels("The label of `given`", value, self.num_labels)


class Standardised(Encoding):
    """A one, and the number in units of its deviation; `least` and `most` are the ends of what was seen."""

    mean: Scalar
    deviation: Scalar
    least: Scalar
    most: Scalar

    @staticmethod
    def of(name: str, values: Values) -> "Standardised":
        """For numbers with this mean, deviation and range."""
        require_finite(name, values)
        wide = np.asarray(values, np.float64)
        remedy = "Leave the condition out: it tells nothing."
        require(bool(np.std(wide) > 0), f"{name} must differ between networks", f"{wide[0]} for all", remedy)
        as_number = lambda value: jnp.asarray(value, jnp.result_type(float))
        return Standardised(*map(as_number, (wide.mean(), wide.std(), wide.min(), wide.max())))

    @property
    def size(self) -> int:
        return 2

    def contexts(self, values: Values) -> Float[np.ndarray, "network context"]:
        wide = np.asarray(values, np.float64)
        mean, deviation = (np.asarray(each, np.float64) for each in (self.mean, self.deviation))
        return np.stack([np.ones_like(wide), (wide - mean) / deviation], axis=-1)

    def require_seen(self, value: Shaped[np.ndarray, ""]) -> None:
        """Up to one deviation beyond the range; farther out nothing was learned, or the units are others."""
        low, high = float(self.least - self.deviation), float(self.most + self.deviation)
        asked = f"The value of `given` must lie within a deviation of what was seen, from {low:.4g} to {high:.4g}"
        require(low <= float(value) <= high, asked, value, "Ask for a number in the units of training.")


def require_labels(name: str, labels: Shaped[np.ndarray | Array, "..."], num_labels: int) -> None:
    """Raise unless all are whole numbers from 0 to `num_labels` − 1."""
    whole = np.issubdtype(labels.dtype, np.integer)
    require_type(whole, f"{name} must be a whole number", labels.dtype.name, "Number the labels from 0 on.")
    inside = bool(np.all((labels >= 0) & (labels < num_labels)))
    came = f"labels from {labels.min()} to {labels.max()}" if labels.ndim else labels
    require(inside, f"{name} must be from 0 to {num_labels - 1}", came, "Number the labels from 0 on.")
