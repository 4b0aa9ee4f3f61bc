"""Corruptions: inputs made worse on purpose, in five severities from 1, the mildest, to 5.

    pixel noise        x' = x + s ε,  ε ~ N(0, 1)       s = 0.04, 0.06, 0.08, 0.09, 0.1   times black to white
    Gaussian blur      x' = K_σ x K_σᵀ                  σ = 0.4, 0.6, 0.7, 0.8, 1         pixels
    contrast           x' = x̄ + c (x − x̄)               c = 0.75, 0.5, 0.4, 0.3, 0.15
    column noise       x' = x + s ε,  ε ~ N(0, 1)       s = 0.1, 0.2, 0.4, 0.8, 1.6       times the column's spread

Inputs are in original units, whatever these are, and so are the corrupted ones. The strengths for images are those of
CIFAR-10-C, for images of about 30 × 30 pixels. Unlike there, values are neither clipped nor rounded, since x need not
be bytes, and blur mirrors the image at its edges, which keeps the mean. The strengths for tables are our own.

Reference: Hendrycks and Dietterich, Benchmarking neural network robustness to common corruptions (2019), and its code.
"""

import abc
import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from weightscape.core import PRNGKey, registered
from weightscape.core.checks import require, require_count, require_positive, shape_of
from weightscape.core.numbers import number

SEVERITIES = (1, 2, 3, 4, 5)
PIXEL_NOISE = (0.04, 0.06, 0.08, 0.09, 0.1)
BLUR = (0.4, 0.6, 0.7, 0.8, 1.0)
CONTRAST = (0.75, 0.5, 0.4, 0.3, 0.15)
COLUMN_NOISE = (0.1, 0.2, 0.4, 0.8, 1.6)

_BLUR_RADIUS = 4  # in units of σ: what lies beyond is 6e-5 of a Gaussian


def _number_or_none(value: ArrayLike | tuple | list | None) -> Array | None:
    return None if value is None else number(value)


class Corruption(eqx.Module):
    """A way to make inputs worse, at a severity."""

    severity: eqx.AbstractVar[int]

    @abc.abstractmethod
    def corrupted(self, key: PRNGKey, x: Float[Array, "point *input"]) -> Float[Array, "point *input"]:
        """The inputs made worse; those that are not random leave the key alone."""


@registered("evaluate.PixelNoise")
class PixelNoise(Corruption):
    """Independent normal noise on every pixel, of images or of flattened ones.

    - `severity`: 1 to 5; the noise has standard deviation `PIXEL_NOISE[severity − 1]` × `span`.
    - `span`: from black to white in the units of x, such as 255; None takes the largest less the smallest of all x.

    Example:
    >>> PixelNoise(severity=3).corrupted(jax.random.key(0), jnp.zeros((2, 8, 8, 1))).shape
    (2, 8, 8, 1)
    """

    severity: int = eqx.field(static=True, default=1)
    span: Float[Array, ""] | None = eqx.field(converter=_number_or_none, default=None)

    def __check_init__(self):
        _require_severity("PixelNoise", self.severity)
        if self.span is not None:
            require_positive("`span` of PixelNoise", self.span)

    def corrupted(self, key: PRNGKey, x: Float[Array, "point *input"]) -> Float[Array, "point *input"]:
        span = jnp.max(x) - jnp.min(x) if self.span is None else self.span.astype(x.dtype)
        return x + PIXEL_NOISE[self.severity - 1] * span * jax.random.normal(key, x.shape, x.dtype)


@registered("evaluate.GaussianBlur")
class GaussianBlur(Corruption):
    """Each pixel becomes a Gaussian mean of those around it, channel by channel.

    - `severity`: 1 to 5; the Gaussian has standard deviation `BLUR[severity − 1]` pixels, and ends at four of them.

    Beyond an edge lies the mirror image, edge pixel included: `scipy.ndimage.gaussian_filter` calls this "reflect".

    The mean of each channel stays, since this filter is a symmetric matrix whose rows sum to 1.
    """

    severity: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        _require_severity("GaussianBlur", self.severity)

    def corrupted(self, key: PRNGKey, x: Float[Array, "point *input"]) -> Float[Array, "point *input"]:
        del key
        _require_images("GaussianBlur", x)
        along_height, along_width = (
            jnp.asarray(_mirrored_filter(size, BLUR[self.severity - 1]), x.dtype) for size in x.shape[1:3]
        )
        return jnp.einsum("hi,wj,pijc->phwc", along_height, along_width, x, precision=jax.lax.Precision.HIGHEST)


@registered("evaluate.Contrast")
class Contrast(Corruption):
    """Pixels are drawn to the mean of their image and channel, which stays.

    - `severity`: 1 to 5; the differences from the mean shrink to `CONTRAST[severity − 1]` of what they were.
    """

    severity: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        _require_severity("Contrast", self.severity)

    def corrupted(self, key: PRNGKey, x: Float[Array, "point *input"]) -> Float[Array, "point *input"]:
        del key
        _require_images("Contrast", x)
        mean = jnp.mean(x, axis=(1, 2), keepdims=True)
        return mean + CONTRAST[self.severity - 1] * (x - mean)


@registered("evaluate.ColumnNoise")
class ColumnNoise(Corruption):
    """Independent normal noise on a table, in proportion to each column's spread.

    - `severity`: 1 to 5; the noise of a column has standard deviation `COLUMN_NOISE[severity − 1]` × its `spread`.
    - `spread`: one number a column in original units, such as `data.train.scaling.x_scale`; None takes the standard
      deviation of each column of x, and leaves columns that are constant alone.

    Example:
    >>> ColumnNoise(severity=2, spread=(1.0, 100.0)).corrupted(jax.random.key(0), jnp.zeros((5, 2))).shape
    (5, 2)
    """

    severity: int = eqx.field(static=True, default=1)
    spread: Float[Array, " column"] | None = eqx.field(converter=_number_or_none, default=None)

    def __check_init__(self):
        _require_severity("ColumnNoise", self.severity)
        if self.spread is not None:
            require_positive("`spread` of ColumnNoise", self.spread)

    def corrupted(self, key: PRNGKey, x: Float[Array, "point *input"]) -> Float[Array, "point *input"]:
        remedy = "Pass rows of columns; for images there is PixelNoise."
        require(x.ndim == 2, "`x` of ColumnNoise must be a table", f"shape {shape_of(x)}", remedy)
        spread = jnp.std(x, axis=0) if self.spread is None else self.spread.astype(x.dtype)
        asked = f"`spread` of ColumnNoise must have one number for each of the {x.shape[1]} columns"
        require(spread.shape == x.shape[1:], asked, f"shape {shape_of(spread)}", "Pass one for each, or None.")
        return x + COLUMN_NOISE[self.severity - 1] * spread[None] * jax.random.normal(key, x.shape, x.dtype)


CORRUPTIONS: dict[str, Callable[[], Corruption]] = {
    "pixel_noise": PixelNoise,
    "gaussian_blur": GaussianBlur,
    "contrast": Contrast,
    "column_noise": ColumnNoise,
}


def at_severity(corruption: Corruption, severity: int) -> Corruption:
    """The same corruption at another severity."""
    return dataclasses.replace(corruption, severity=severity)


def _require_severity(owner: str, severity: int) -> None:
    name, remedy = f"`severity` of {owner}", "Pass a whole number from 1, the mildest, to 5."
    require_count(name, severity)
    require(severity in SEVERITIES, f"{name} must be at most {SEVERITIES[-1]}", severity, remedy)


def _require_images(owner: str, x: Array) -> None:
    remedy = "Pass images that are not flattened, of shape (point, height, width, channel)."
    require(x.ndim == 4, f"`x` of {owner} must have four axes", f"shape {shape_of(x)}", remedy)


def _mirrored_filter(size: int, sigma: float) -> Float[np.ndarray, "size size"]:
    """The matrix that smooths a line of pixels, which goes on beyond its ends as … c b a | a b c … x y z | z y x …"""
    radius = int(_BLUR_RADIUS * sigma + 0.5)
    offsets = np.arange(-radius, radius + 1)
    kernel = np.exp(-0.5 * (offsets / sigma) ** 2)
    rows = np.arange(size)[:, None]
    unfolded = (rows + offsets) % (2 * size)
    matrix = np.zeros((size, size))
    np.add.at(matrix, (rows, np.minimum(unfolded, 2 * size - 1 - unfolded)), kernel / kernel.sum())
    return matrix
