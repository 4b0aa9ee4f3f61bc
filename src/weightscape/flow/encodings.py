"""How a velocity field is shown what is known about a network: numbers of order one, and zeros where nothing is known.

    e(c) = one-hot c                          of a label
    e(y) = (1, (y − mean) / deviation)        of a property, with the mean and deviation of the training networks
    ∅ = 0                                     nothing known; no label and no property is shown so

Encoding is done on the host, in double precision, so that a large mean takes no digits from what differs. The mean is
kept in parts, which have these digits in single precision, too, and the ends of what was seen as they are shown.
"""

import abc

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Shaped

from weightscape.core.checks import require, require_finite, require_type
from weightscape.core.numbers import number
from weightscape.core.types import Scalar

Values = Shaped[np.ndarray, " network"]
"""What is known of each network: labels or numbers."""

_NUM_PARTS = 3
"""Numbers of single precision, of 24 binary digits, which hold the 53 of a number of double precision."""

_ROUNDING = 8 * float(np.finfo(np.float64).eps)
"""Relative to the largest value. The mean of equal numbers, up to a million, is off by less than half of this."""


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
    """A one, and the number in units of its deviation.

    - `mean`: numbers of single precision whose sum it is, in double.  `deviation`: that of training networks.
    - `least`, `most`: the ends of what was seen, less the mean and in units of the deviation.
    """

    mean: Float[Array, " part"]
    deviation: Scalar
    least: Scalar
    most: Scalar

    @staticmethod
    def of(name: str, values: Values) -> "Standardised":
        """For numbers with this mean, deviation and range."""
        require_finite(name, values)
        wide = np.asarray(values, np.float64)
        mean, deviation = float(np.mean(wide)), float(np.std(wide))
        differs, remedy = deviation > _ROUNDING * np.max(np.abs(wide)), "Leave the condition out: it tells nothing."
        require(bool(differs), f"{name} must differ between networks", f"{wide[0]} for all, up to rounding", remedy)
        least, most = ((end - mean) / deviation for end in (np.min(wide), np.max(wide)))
        return Standardised(*map(number, (_parts(mean), deviation, least, most)))

    @property
    def size(self) -> int:
        return 2

    def contexts(self, values: Values) -> Float[np.ndarray, "network context"]:
        wide = np.asarray(values, np.float64)
        mean, deviation = self._units()
        return np.stack([np.ones_like(wide), (wide - mean) / deviation], axis=-1)

    def require_seen(self, value: Shaped[np.ndarray, ""]) -> None:
        """Up to one deviation beyond the range; farther out nothing was learned, or the units are others."""
        require_numbers("The value of `given`", value)
        (_, place), (low, high) = self.contexts(value[None])[0], (float(self.least) - 1, float(self.most) + 1)
        mean, deviation = self._units()
        ends = [mean + deviation * end for end in (low, high)]
        # Three digits of a deviation, however far from zero it is.
        digits = 4 + max(0, int(np.log10(np.max(np.abs(ends)) / deviation)))
        seen = " to ".join(f"{end:.{digits}g}" for end in ends)
        asked = f"The value of `given` must lie within a deviation of what was seen, from {seen}"
        require(bool(low <= place <= high), asked, value, "Ask for a number in the units of training.")

    def _units(self) -> tuple[float, float]:
        """The mean and the deviation, in double precision."""
        return float(np.sum(np.asarray(self.mean, np.float64))), float(self.deviation)


def require_numbers(name: str, values: Shaped[np.ndarray, "..."]) -> None:
    """Raise unless all are real numbers, whole or not."""
    came = values.dtype.name if values.ndim else repr(values.item())
    require_type(values.dtype.kind in "biuf", f"{name} must be a number", came, "Pass one such as 0.5.")


def require_labels(name: str, labels: Shaped[np.ndarray | Array, "..."], num_labels: int) -> None:
    """Raise unless all are whole numbers from 0 to `num_labels` − 1."""
    whole = np.issubdtype(labels.dtype, np.integer)
    require_type(whole, f"{name} must be a whole number", labels.dtype.name, "Number the labels from 0 on.")
    inside = bool(np.all((labels >= 0) & (labels < num_labels)))
    came = f"labels from {labels.min()} to {labels.max()}" if labels.ndim else labels
    require(inside, f"{name} must be from 0 to {num_labels - 1}", came, "Number the labels from 0 on.")


def _parts(value: float) -> Float[np.ndarray, " part"]:
    """Numbers of single precision whose sum is the value: the nearest one, that of what is missing, and so on."""
    parts = np.zeros(_NUM_PARTS, np.float32)
    for part in range(_NUM_PARTS):
        parts[part] = value - np.sum(parts, dtype=np.float64)
    return parts
