"""One number for each point, checked: what curves and rankings of points work on."""

import numpy as np
from jaxtyping import ArrayLike, Float

from weightscape.core.checks import require, require_finite, require_type, shape_of


def point_numbers(name: str, values: ArrayLike | list) -> Float[np.ndarray, " point"]:
    """`values` in double precision; raises unless they are one finite number for each of some points."""
    numbers = np.asarray(values)
    remedy = "Pass one number for each point."
    require_type(numbers.dtype.kind in "fiub", f"{name} must hold numbers", f"type {numbers.dtype}", remedy)
    require(numbers.ndim == 1 and numbers.size > 0, f"{name} must have shape (point,)", shape_of(numbers), remedy)
    require_finite(name, numbers)
    return numbers.astype(np.float64)


def over_entries(values: ArrayLike) -> Float[np.ndarray, " point"]:
    """The mean over the entries of vector targets, in double precision: one number for each point."""
    numbers = np.asarray(values, np.float64)
    return numbers if numbers.ndim == 1 else numbers.mean(axis=1)
