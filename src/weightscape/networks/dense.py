"""The dense layer.

    z = h W + b

`W` has shape (inputs, units), `b` (units). Parameters: `{"weight": W, "bias": b}`, or without the bias.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.types import PRNGKey, Tree
from weightscape.networks.activations import Activation
from weightscape.networks.initial import scaled_normal


def init_dense(key: PRNGKey, num_inputs: int, num_units: int, dtype: np.dtype, *, bias: bool = True) -> Tree:
    """Weights of variance 1 / inputs, shifts of zero."""
    weight = scaled_normal(key, (num_inputs, num_units), num_inputs, dtype)
    return {"weight": weight, "bias": jnp.zeros((num_units,), dtype)} if bias else {"weight": weight}


def apply_dense(params: Tree, h: Float[Array, "point input"]) -> Float[Array, "point unit"]:
    """z = h W + b."""
    z = h @ params["weight"]
    return z + params["bias"][None, :] if "bias" in params else z


def apply_dense_points_last(params: Tree, h: Float[Array, "input point"]) -> Float[Array, "unit point"]:
    """zᵀ = Wᵀ hᵀ + b: the same numbers with the points along the last axis."""
    z = params["weight"].T @ h
    return z + params["bias"][:, None] if "bias" in params else z


def init_readout(key: PRNGKey, num_inputs: int, hidden: tuple[int, ...], num_outputs: int, dtype: np.dtype) -> Tree:
    """Dense layers from features to outputs: `dense0`, `dense1`, …, then `output`."""
    widths = (num_inputs, *hidden, num_outputs)
    names = [*(f"dense{i}" for i in range(len(hidden))), "output"]
    keys = jax.random.split(key, len(names))
    return {name: init_dense(keys[i], widths[i], widths[i + 1], dtype) for i, name in enumerate(names)}


def apply_readout(
    params: Tree, h: Float[Array, "point feature"], activation: Activation, *, num_hidden: int
) -> Float[Array, "point output"]:
    """h_l = φ(h_{l-1} W_l + b_l) through the `dense` layers, then the linear `output`."""
    for i in range(num_hidden):
        h = activation(apply_dense(params[f"dense{i}"], h))
    return apply_dense(params["output"], h)
