"""Products of a leaf with an array of points, read as linear layers.

    dense:        z[p, s, o] = Σ_i h[p, s, i] W[i, o]               a `dot_general` without a batch
    convolution:  z[p, s, o] = Σ_{k, i} h[p, s + k, i] W[k, i, o]   a `conv_general_dilated` without groups

Anything that is not certainly one of these is refused with a reason.
"""

from collections.abc import Sequence
from typing import NamedTuple

from weightscape.networks.linear_layer import AxisOrder, LinearLayer, Window
from weightscape.networks.traced_moves import Origins
from weightscape.networks.traced_program import Step


class NoLayerError(Exception):
    """Why a leaf is no weight of a layer."""


class Product(NamedTuple):
    """A step that multiplies a leaf, moved, with another array.

    - `step`: the step.  `side`: which of its two inputs is the leaf.
    - `name`, `leaf_shape`: path and shape of the leaf.  `origins`: axes of the moved leaf as axes of the leaf.
    - `other_shape`, `output_shape`: shapes of the other array and of the product.  `point`: the other's axis of points.
    """

    step: Step
    side: int
    name: str
    leaf_shape: tuple[int, ...]
    origins: Origins
    other_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    point: int


def dense_layer(product: Product) -> LinearLayer:
    """The dense layer that a `dot_general` is; axes of the other array that are not summed over are positions."""
    contracted, batched = product.step.equation.params["dimension_numbers"]
    if any(batched):
        raise NoLayerError("a product for each of several groups")
    mine, inputs = contracted[product.side], contracted[1 - product.side]
    outputs = [axis for axis in range(len(product.origins)) if axis not in mine]
    kept = [axis for axis in range(len(product.other_shape)) if axis not in inputs]
    positions = [axis for axis in kept if axis != product.point]
    # The product has the axes that are kept of its first input, then those of its second.
    kept_at, outputs_at = (len(outputs), 0) if product.side == 0 else (0, len(kept))
    made_at = [kept_at + kept.index(axis) for axis in (product.point, *positions)]
    made_at += range(outputs_at, outputs_at + len(outputs))
    return LinearLayer(
        product.name,
        product.leaf_shape,
        _leaf_order(product, [*mine, *outputs]),
        _axis_order(product.other_shape, [product.point, *positions, *inputs], num_units=len(inputs)),
        _axis_order(product.output_shape, made_at, num_units=len(outputs)),
    )


def convolution_layer(product: Product) -> LinearLayer:
    """The convolution layer that a `conv_general_dilated` is."""
    options = product.step.equation.params
    seen, kernel, made = options["dimension_numbers"]
    if options["feature_group_count"] != 1 or options["batch_group_count"] != 1:
        raise NoLayerError("grouped convolution")
    if product.side != 1:
        raise NoLayerError("a kernel slides over it")
    if product.point != seen[0]:
        raise NoLayerError("points are no batch of the convolution")
    output, channel, *places = kernel
    window = Window(
        _leaf_sizes(product, places), tuple(options["window_strides"]),
        tuple((int(low), int(high)) for low, high in options["padding"]),
        tuple(options["lhs_dilation"]), tuple(options["rhs_dilation"]),
    )  # fmt: skip
    return LinearLayer(
        product.name,
        product.leaf_shape,
        _leaf_order(product, [channel, *places, output]),
        _axis_order(product.other_shape, [seen[0], *seen[2:], seen[1]], num_units=1),
        _axis_order(product.output_shape, [made[0], *made[2:], made[1]], num_units=1),
        window,
    )


def point_axis(shape: tuple[int, ...], wider_shape: tuple[int, ...], num_points: int) -> int:
    """The one axis that grows with the points: from N to 2N where N is `num_points`."""
    growing = [axis for axis, sizes in enumerate(zip(shape, wider_shape, strict=True)) if sizes[0] != sizes[1]]
    if not growing:
        raise NoLayerError("multiplies no points")
    if len(growing) > 1 or (shape[growing[0]], wider_shape[growing[0]]) != (num_points, 2 * num_points):
        raise NoLayerError("multiplies points that have no axis of their own")
    return growing[0]


def _leaf_order(product: Product, axes: Sequence[int]) -> tuple[int, ...]:
    """Axes of the moved leaf as axes of the leaf; those of size one, which may lie anywhere, last."""
    order = [origin for axis in axes if (origin := product.origins[axis]) is not None]
    return (*order, *(axis for axis in range(len(product.leaf_shape)) if axis not in order))


def _leaf_sizes(product: Product, axes: Sequence[int]) -> tuple[int, ...]:
    """Sizes of these axes of the moved leaf."""
    origins = [product.origins[axis] for axis in axes]
    return tuple(1 if origin is None else product.leaf_shape[origin] for origin in origins)


def _axis_order(shape: tuple[int, ...], order: Sequence[int], *, num_units: int) -> AxisOrder:
    sizes = tuple(shape[axis] for axis in order)
    split = len(order) - num_units
    return AxisOrder(tuple(int(axis) for axis in order), sizes[1:split], sizes[split:])
