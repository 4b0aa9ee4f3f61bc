"""Batch: inputs and targets, point by point, in the units the user thinks in.

The first axis of `x` and `y` is the point. A batch may carry the `Scaling` under which a network should
see it; the arrays themselves are never scaled.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, Shaped

from weightscape.core.checks import require, require_finite, require_type, shape_of
from weightscape.data.scaling import Scaling

Values = ArrayLike | list | tuple | pd.DataFrame | pd.Series
"""What a user may pass where an array is meant."""


class Batch(eqx.Module):
    """Inputs and targets with one row for each point.

    Inputs and float targets take the default float type, whole-number targets become int32. Values are
    checked when the batch is made; traced values pass, since they do not exist yet.

    Arguments:
        x: inputs, at least two axes: (point, input) for tables, (point, height, width, channel) for images.
        y: targets, (point,) or (point, output).
        scaling: how a network should see the batch; None means as it is.

    Example:
    >>> len(Batch([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]))
    3

    """

    x: Float[Array, "point ..."]
    y: Shaped[Array, "point ..."]
    scaling: Scaling | None

    def __init__(self, x: Values, y: Values, scaling: Scaling | None = None):
        self.x = _inputs(x)
        self.y = _targets(y)
        self.scaling = scaling
        _check_shapes(self.x, self.y)
        _check_finite("`x` of Batch", self.x)
        _check_finite("`y` of Batch", self.y)

    def __len__(self) -> int:
        return self.x.shape[0]


def _inputs(x: Values) -> Array:
    return _floats(_numbers("`x` of Batch", x))


def _targets(y: Values) -> Array:
    numbers = _numbers("`y` of Batch", y)
    if jnp.issubdtype(numbers.dtype, jnp.floating):
        return _floats(numbers)
    _require_int32(numbers)
    return jnp.asarray(numbers, jnp.int32)


def _floats(numbers: np.ndarray | Array) -> Array:
    with np.errstate(over="ignore"):  # too large for the float type: infinite, which the checks report
        return jnp.asarray(numbers, jnp.result_type(float))


def _numbers(name: str, values: Values) -> np.ndarray | Array:
    array = values if isinstance(values, jax.Array) else np.asarray(values)
    real = any(jnp.issubdtype(array.dtype, kind) for kind in (jnp.floating, jnp.integer, jnp.bool_))
    remedy = "Pass numbers; `from_arrays` encodes labels and `from_csv` encodes text columns."
    require_type(real, f"{name} must hold real numbers", f"entries of type {array.dtype}", remedy)
    return array


def _require_int32(y: np.ndarray | Array) -> None:
    if not isinstance(y, Tracer) and y.size > 0:
        largest = int(np.max(np.asarray(y)))
        remedy = "Pass class numbers or counts below 2³¹, or floats."
        require(largest < 2**31, "Whole-number `y` of Batch must fit in 32 bits", largest, remedy)


def _check_shapes(x: Array, y: Array) -> None:
    reshape = "For a single input column pass `x.reshape(-1, 1)`."
    require(x.ndim >= 2, "`x` of Batch must have at least two axes", f"shape {shape_of(x)}", reshape)
    came = f"x of shape {shape_of(x)} and y of shape {shape_of(y)}"
    same = y.ndim >= 1 and len(x) == len(y)
    asked = "`x` and `y` of Batch must have the same number of rows"
    require(same, asked, came, "Pass one row for each point.")
    require(len(x) > 0, "Batch must have at least one row", came, "Pass some data.")


def _check_finite(name: str, array: Array) -> None:
    if not isinstance(array, Tracer) and not bool(jnp.all(jnp.isfinite(array))):
        require_finite(name, array)
