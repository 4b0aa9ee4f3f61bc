"""Inputs on their way to the network: checked, and in the units it sees.

x' = (x − x_mean) / x_scale
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from weightscape.core.checks import require, require_finite, require_type, shape_of
from weightscape.data import Scaling


def network_inputs(
    x: ArrayLike | list, like: Float[Array, "example ..."], scaling: Scaling | None, *, caller: str
) -> Float[np.ndarray, "point ..."]:
    """`x` in original units as the network sees it, on the host, where it is cut into chunks.

    - `like`: inputs of an example.
    - `caller`: the function that `x` was passed to, for messages.
    """
    inputs = _checked(x, like, f"`x` of {caller}")
    return np.asarray(inputs if scaling is None else scaling.inputs(inputs))


def _checked(x: ArrayLike | list, like: Float[Array, "example ..."], name: str) -> Float[Array, "point ..."]:
    inputs = np.asarray(x)
    remedy = "Pass numbers; the loaders of `weightscape.data` encode text columns."
    require_type(inputs.dtype.kind in "fiub", f"{name} must hold numbers", f"type {inputs.dtype}", remedy)
    wanted = shape_of(like)[1:]
    asked = f"{name} must have shape (point, {', '.join(str(size) for size in wanted)})"
    remedy = "Pass the same inputs as in training; for one point or one column, `x.reshape(-1, number of columns)`."
    require(shape_of(inputs)[1:] == wanted and inputs.ndim == like.ndim, asked, shape_of(inputs), remedy)
    require(len(inputs) > 0, f"{name} must hold at least one point", shape_of(inputs), "Pass some inputs.")
    require_finite(name, inputs)
    return jnp.asarray(inputs, like.dtype)
