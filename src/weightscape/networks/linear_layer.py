"""What is known of a linear layer: where its weights lie and how its arrays are laid out.

    z[p, s, o] = Σ_i h[p, s, i] W[i, o] + b[o]

with p the point, s the position (a place or a time at which the same weights are used), i and o inputs and outputs.
This is the canonical form. A program keeps the same numbers in other orders: leaves of any shape, points along any
axis, and for a convolution images in place of their patches h. A `LinearLayer` knows the way from one to the other.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


@dataclasses.dataclass(frozen=True)
class AxisOrder:
    """The order in which an array holds points, positions and units.

    - `order`: the array's axes as (point, *positions, *units); so `order[0]` is the axis of the points.
    - `positions`, `units`: sizes of these axes.
    """

    order: tuple[int, ...]
    positions: tuple[int, ...]
    units: tuple[int, ...]

    @property
    def num_positions(self) -> int:
        return math.prod(self.positions)

    @property
    def num_units(self) -> int:
        return math.prod(self.units)

    def flatten(self, array: Float[Array, "..."]) -> Float[Array, "point position unit"]:
        """The array in canonical form."""
        return array.transpose(self.order).reshape(array.shape[self.order[0]], self.num_positions, self.num_units)

    def unflatten(self, array: Float[Array, "point position unit"]) -> Float[Array, "..."]:
        """The inverse of `flatten`."""
        return array.reshape(array.shape[0], *self.positions, *self.units).transpose(np.argsort(self.order))


@dataclasses.dataclass(frozen=True)
class Window:
    """How a convolution slides over places: sizes of its kernel, and per spatial axis the rest."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    input_dilation: tuple[int, ...]
    kernel_dilation: tuple[int, ...]

    def patches(self, images: Float[Array, "point ... channel"]) -> Float[Array, "point place input"]:
        """What the kernel sees at each place; inputs are ordered (channel, *kernel)."""
        seen = jax.lax.conv_general_dilated_patches(
            jnp.moveaxis(images, -1, 1), self.kernel, self.strides, self.padding,
            self.input_dilation, self.kernel_dilation, precision=jax.lax.Precision.HIGHEST,
        )  # fmt: skip
        return jnp.moveaxis(seen.reshape(*seen.shape[:2], -1), 1, 2)


@dataclasses.dataclass(frozen=True)
class LinearLayer:
    """A dense layer, or a convolution where there is a `window`.

    - `weight`, `bias`: paths of the leaves; `bias` is None where the layer has none.
    - `weight_shape`, `bias_shape`: shapes of the leaves.
    - `weight_order`: the leaf's axes as (*inputs, *outputs).  `bias_order`: the leaf's axes as (*outputs).
    - `incoming`, `outgoing`: the axes of the array that the layer reads and of the one that it makes. Units that
      come in are the inputs of a dense layer and the channels of a convolution.
    - `window`: how a convolution slides; None for a dense layer.
    """

    weight: str
    weight_shape: tuple[int, ...]
    weight_order: tuple[int, ...]
    incoming: AxisOrder
    outgoing: AxisOrder
    window: Window | None = None
    bias: str | None = None
    bias_shape: tuple[int, ...] = ()
    bias_order: tuple[int, ...] = ()

    @property
    def leaves(self) -> tuple[str, ...]:
        """Paths of the weight and, where there is one, of the bias."""
        return (self.weight,) if self.bias is None else (self.weight, self.bias)

    @property
    def kind(self) -> str:
        return "dense" if self.window is None else "convolution"

    @property
    def num_positions(self) -> int:
        return self.outgoing.num_positions

    @property
    def num_outputs(self) -> int:
        return self.outgoing.num_units

    @property
    def num_inputs(self) -> int:
        """Without the bias: rows of the canonical weight."""
        return math.prod(self.weight_shape) // self.num_outputs


def canonical_weight(layer: LinearLayer, leaf: Array) -> Array:
    """W, of shape (input, output), from the leaf."""
    return leaf.transpose(layer.weight_order).reshape(layer.num_inputs, layer.num_outputs)


def leaf_from_canonical(layer: LinearLayer, matrix: Array) -> Array:
    """The leaf from W, of shape (input, output): the inverse of `canonical_weight`."""
    return _restored(matrix, layer.weight_shape, layer.weight_order)


def canonical_indices(layer: LinearLayer) -> Int[np.ndarray, "input output"]:
    """Where each entry of W lies in the flat (row-major) leaf."""
    indices = _flat_indices(layer.weight_shape, layer.weight_order)
    return indices.reshape(layer.num_inputs, layer.num_outputs)


def canonical_bias(layer: LinearLayer, leaf: Array) -> Array:
    """b, of shape (output,), from the leaf of the bias."""
    return leaf.transpose(layer.bias_order).reshape(-1)


def bias_from_canonical(layer: LinearLayer, vector: Array) -> Array:
    """The leaf of the bias from b, of shape (output,): the inverse of `canonical_bias`."""
    return _restored(vector, layer.bias_shape, layer.bias_order)


def canonical_bias_indices(layer: LinearLayer) -> Int[np.ndarray, " output"]:
    """Where each entry of b lies in the flat (row-major) leaf."""
    return _flat_indices(layer.bias_shape, layer.bias_order).reshape(-1)


def _restored(array: Array, shape: tuple[int, ...], order: tuple[int, ...]) -> Array:
    return array.reshape([shape[axis] for axis in order]).transpose(np.argsort(order))


def _flat_indices(shape: tuple[int, ...], order: tuple[int, ...]) -> np.ndarray:
    return np.arange(math.prod(shape)).reshape(shape).transpose(order)
