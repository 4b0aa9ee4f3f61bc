"""The search for linear layers in the program of a network.

Which axis counts points is read off two traces, for N and for 2N points: the one that has N entries in the first and 2N
in the second. So an axis of N features is never taken for it, and a program that treats another number of points in
another way is refused. All other questions go to the second trace, where no axis of points has size one.

Whether a network mixes its points, as a mean over a batch does, is not asked: a layer's products are the same.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from weightscape.core.checks import InputError, require
from weightscape.core.types import Tree
from weightscape.networks.linear_layer import LinearLayer
from weightscape.networks.linear_products import NoLayerError, Product, convolution_layer, dense_layer, point_axis
from weightscape.networks.traced_paths import Path, Users, alike, dependents, follow, unmoved, users_of
from weightscape.networks.traced_program import Program, trace

_PRODUCTS = {"dot_general": dense_layer, "conv_general_dilated": convolution_layer}
_SUMS = ("add", "add_any")
_LOOPS = ("scan", "while", "cond")


class Site(NamedTuple):
    """Where a layer lies in a program: steps by index, variables by number.

    - `weight_moves`: steps from the weight's leaf to the product.
    - `product`: the product itself.  `side`: which of its two inputs is the weight.
    - `output_moves`: steps from there to the sum with the bias.  `bias_steps`: moves of the bias, and that sum.
    - `result`: the variable of the outputs, bias included.
    """

    layer: LinearLayer
    weight_moves: tuple[int, ...]
    product: int
    side: int
    result: int
    output_moves: tuple[int, ...] = ()
    bias_steps: tuple[int, ...] = ()


class Found(NamedTuple):
    """A program, the layers in it in the order of execution, and a reason for each leaf that belongs to none."""

    program: Program
    sites: tuple[Site, ...]
    left_out: tuple[tuple[str, str], ...]
    last: LinearLayer | None

    @property
    def layers(self) -> tuple[LinearLayer, ...]:
        return tuple(site.layer for site in self.sites)


class _Traces(NamedTuple):
    """The program for N and for 2N points; who uses a variable, and which depend on x, are the same in both."""

    program: Program
    wider: Program
    users: Users
    of_points: set[int]


def search(apply: Callable[[Tree, Any], Any], params: Tree, x: Any) -> Found:
    """The linear layers of the program that `apply` runs on arrays of these shapes."""
    params, x = jax.tree.map(_shape, params), _shape(x)
    remedy = "Pass one point or more."
    require(bool(x.shape) and x.shape[0] > 0, "`x` must have a leading axis of points", f"shape {x.shape}", remedy)
    program, wider = trace(apply, params, x), _trace_wider(apply, params, x)
    if program.wiring != wider.wiring:
        reason = "the program depends on the number of points"
        return Found(program, (), tuple((path, reason) for path in program.parameters), None)
    return _search(_Traces(program, wider, users_of(wider), dependents(wider, wider.x)))


def _search(traces: _Traces) -> Found:
    wider = traces.wider
    paths = {name: follow(wider, traces.users, variable) for name, variable in wider.parameters.items()}
    bare, reasons = [], {}
    for name, path in paths.items():
        try:
            bare.append(_bare_site(traces, name, path))
        except NoLayerError as refusal:
            reasons[name] = str(refusal)
    summands = {paths[name].variable: (name, paths[name]) for name in reasons if paths[name].user is not None}
    sites = sorted((_with_bias(traces, site, summands) for site in bare), key=lambda site: site.product)
    biases = {site.layer.bias for site in sites}
    left_out = tuple((name, reason) for name, reason in reasons.items() if name not in biases)
    return Found(traces.program, tuple(sites), left_out, _last(wider, sites))


def _bare_site(traces: _Traces, name: str, path: Path) -> Site:
    """The layer whose weight is this leaf, without a bias."""
    if path.user is None:
        raise NoLayerError(path.reason)
    step, wider = traces.wider.steps[path.user], traces.wider
    if step.name not in _PRODUCTS:
        raise NoLayerError(_no_product(step.name))
    side = step.inputs.index(path.variable)
    other = step.inputs[1 - side]
    if other not in traces.of_points or not jnp.issubdtype(wider.types[other].dtype, jnp.floating):
        raise NoLayerError("multiplies no function of the inputs")
    leaf_shape, shape = wider.types[wider.parameters[name]].shape, wider.types[path.variable].shape
    if math.prod(leaf_shape) != math.prod(shape):
        raise NoLayerError("repeated before it is used")
    num_points = traces.program.types[traces.program.x].shape[0]
    point = point_axis(traces.program.types[other].shape, wider.types[other].shape, num_points)
    other_shape, output_shape = wider.types[other].shape, wider.types[step.outputs[0]].shape
    product = Product(step, side, name, leaf_shape, path.origins, other_shape, output_shape, point)
    return Site(_PRODUCTS[step.name](product), path.moves, path.user, side, step.outputs[0])


def _with_bias(traces: _Traces, site: Site, summands: Mapping[int, tuple[str, Path]]) -> Site:
    """The layer with the leaf that is added to its outputs, where there is one that has a number for each of them."""
    outputs = follow(traces.wider, traces.users, site.result)
    if outputs.user is None or traces.wider.steps[outputs.user].name not in _SUMS:
        return site
    step = traces.wider.steps[outputs.user]
    name, path = summands.get(step.inputs[1 - step.inputs.index(outputs.variable)], (None, None))
    same_shape = traces.wider.types[step.outputs[0]].shape == traces.wider.types[outputs.variable].shape
    if name is None or path is None or not same_shape or not alike(traces.wider, site.result, outputs.variable):
        return site
    shape = traces.wider.types[traces.wider.parameters[name]].shape
    order = _bias_order(site.layer, outputs, path, shape)
    if order is None:
        return site
    layer = dataclasses.replace(site.layer, bias=name, bias_shape=shape, bias_order=order)
    bias_steps = (*path.moves, outputs.user)
    return site._replace(layer=layer, output_moves=outputs.moves, bias_steps=bias_steps, result=step.outputs[0])


def _bias_order(layer: LinearLayer, outputs: Path, bias: Path, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The axes of the bias in the order of the layer's outputs; None unless it holds one number for each of them."""
    beside = {axis: origin for axis, origin in zip(outputs.origins, bias.origins, strict=True) if axis is not None}
    split = len(layer.outgoing.order) - len(layer.outgoing.units)
    order = [origin for axis in layer.outgoing.order[split:] if (origin := beside.get(axis)) is not None]
    # With so many numbers along the outputs, none are left to vary along points or positions.
    if math.prod(shape) != layer.num_outputs or math.prod(shape[axis] for axis in order) != layer.num_outputs:
        return None
    return (*order, *(axis for axis in range(len(shape)) if axis not in order))


def _last(program: Program, sites: list[Site]) -> LinearLayer | None:
    """The layer whose outputs are those of the network but for moves of axes."""
    results = {site.result: site.layer for site in sites}
    return next((results[variable] for variable in unmoved(program, program.result) if variable in results), None)


def _no_product(name: str) -> str:
    if name in _LOOPS:
        return f"enters a {name}"
    if name.startswith("custom_"):
        return "enters a function with its own derivative"
    return "added, but not as the bias of a layer" if name in _SUMS else f"no linear layer, meets {name}"


def _shape(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf))


def _trace_wider(apply: Callable[[Tree, Any], Any], params: Tree, x: jax.ShapeDtypeStruct) -> Program:
    num_points = 2 * x.shape[0]
    try:
        return trace(apply, params, jax.ShapeDtypeStruct((num_points, *x.shape[1:]), x.dtype))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"A network must take any number of points, got an error with {num_points}: {error}. Let `apply` read the "
            "number off `x`."
        ) from error
