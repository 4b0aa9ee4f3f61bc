"""Number fields: a float becomes an array, so that a new value is no new program."""

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike


def number(value: ArrayLike | tuple | list) -> Array:
    """The value as an array of the default float type; the converter of number fields."""
    return jnp.asarray(value, jnp.result_type(float))
