"""Linear layers found in the trace of a network: what is found, what is refused, and the laws that a layer obeys.

The laws run over the networks of the table, over more shapes of MLP and over plain functions that keep their leaves
and points in unusual orders.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.networks.filled import filled
from tests.networks.table import IMPORTED, NETWORKS

from weightscape import networks as nn
from weightscape.core import InputError, tree
from weightscape.networks import find_linear_layers

CLOSE = {"rtol": 1e-9, "atol": 1e-12}  # sums of up to a thousand terms of size one, in double precision


def function(apply, **shapes):
    """A network with leaves of these shapes."""
    return nn.Function(lambda key, x: {name: jnp.zeros(shape) for name, shape in shapes.items()}, apply)


def convolve(h, kernel, axes=("NHWC", "HWIO", "NHWC"), strides=(1, 1), padding="SAME", **options):
    return jax.lax.conv_general_dilated(h, kernel, strides, padding, dimension_numbers=axes, **options)


def to_outputs(h):
    """(point, output) from an array with more axes, without a parameter."""
    return jnp.sum(jnp.tanh(h).reshape(h.shape[0], -1, 2), axis=1)


shared = jax.jit(lambda weight, bias, h: jnp.tanh(h @ weight + bias[None, :]))


def heads(params, x):
    """Projections to several heads, whose bias is kept in another order than the weight."""
    made = jnp.einsum("ptd,hdk->phkt", x, params["w"]) + params["b"].T[None, :, :, None]
    return to_outputs(made)


def turned(params, x):
    """Axes of one size, moved in a circle; as a matrix the bias is not symmetric."""
    made = jnp.tensordot(x, jnp.transpose(params["w"], (1, 2, 0)), axes=1)  # (point, position, output, output)
    return to_outputs(jnp.swapaxes(jnp.transpose(made, (2, 0, 3, 1)) + params["b"][:, None, :, None], 0, 1))


def twice_shared(params, x):
    return shared(params["v"], params["c"], shared(params["w"], params["b"], x))


def remembered(params, x):
    h = jax.checkpoint(lambda leaf, h: jnp.sin(h @ leaf))(params["w"], x)
    return jnp.tanh(h) @ params["v"]


def points_in_the_middle(params, x):
    z = jnp.tensordot(params["w"], jnp.moveaxis(x, 0, 1), axes=[[1], [0]])  # (output, point, position)
    return to_outputs(jnp.moveaxis(z + params["b"][:, None, None], 1, 0))


def sizes_of_one(params, x):
    z = jnp.tanh(x @ params["w"] + params["b"][None]) @ params["v"][0] + params["c"]
    return jnp.broadcast_to(z, (x.shape[0], 1)) * jnp.ones((1, 2))


def strided(params, x):
    return to_outputs(convolve(x, params["w"], strides=(2, 2)) + params["b"][None, None])


def channels_first(params, x):
    z = convolve(x, params["w"], ("NCHW", "OIHW", "NCHW"), (2, 1), ((1, 0), (2, 3)), rhs_dilation=(1, 2))
    return to_outputs(z + params["b"][None, :, None, None])


def transposed(params, x):
    z = convolve(x, jnp.swapaxes(params["w"], 0, 1), padding=((2, 1), (1, 1)), lhs_dilation=(2, 1))
    return to_outputs(z + params["b"][None, None, None, :])


def mapped(params, x):
    """One point at a time, as modules of other libraries work."""
    one = lambda h: convolve(h[None], params["w"], ("NCHW", "OIHW", "NCHW"))[0] + params["b"]
    return to_outputs(jax.vmap(one)(x))


def alone_and_with_bias(params, x):
    z = x @ params["w"]
    return jnp.tanh(z + params["b"][None]) * z


FUNCTIONS = {
    "matmul": (function(lambda p, x: x @ p["w"], w=(4, 2)), (3, 4)),
    "as_many_points_as_features": (function(lambda p, x: to_outputs(x @ p["w"]), w=(4, 4)), (4, 4, 4)),
    "vector": (function(lambda p, x: jnp.stack([x @ p["w"], x @ p["v"]], axis=1), w=(4,), v=(4,)), (3, 4)),
    "turned": (function(turned, w=(2, 2, 2), b=(2, 2)), (3, 4, 2)),
    "heads": (function(heads, w=(3, 4, 2), b=(2, 3)), (3, 5, 4)),
    "jitted": (function(twice_shared, w=(4, 4), b=(4,), v=(4, 4), c=(4,)), (3, 4)),
    "checkpoint": (function(remembered, w=(4, 3), v=(3, 2)), (3, 4)),
    "points_in_the_middle": (function(points_in_the_middle, w=(2, 4), b=(2,)), (3, 4, 5)),
    "sizes_of_one": (function(sizes_of_one, w=(1, 3), b=(3,), v=(1, 3, 1), c=(1, 1)), (3, 1)),
    "stride_two_even_kernel": (function(strided, w=(2, 4, 3, 2), b=(1, 2)), (3, 5, 6, 3)),
    "channels_first": (function(channels_first, w=(2, 3, 2, 3), b=(2,)), (3, 3, 5, 6)),
    "transposed": (function(transposed, w=(3, 2, 2, 4), b=(4,)), (3, 3, 4, 2)),
    "one_place": (function(lambda p, x: to_outputs(convolve(x, p["w"], strides=(2, 2))), w=(1, 1, 3, 4)), (3, 4, 4, 3)),
    "mapped": (function(mapped, w=(2, 3, 3, 3), b=(2, 1, 1)), (3, 3, 4, 4)),
    "alone_and_with_bias": (function(alone_and_with_bias, w=(4, 2), b=(2,)), (3, 4)),
}  # fmt: skip

PERCEPTRONS = {
    "without_bias": (nn.MLP(hidden=(5, 4), bias=False), (3, 4)),
    "linear": (nn.MLP(hidden=()), (3, 4)),
    "relu_skip": (nn.MLP(hidden=(5, 5), activation="relu", skip=True), (3, 4)),
    "gelu_float32": (nn.MLP(hidden=(5,), activation="gelu", precision="float32"), (3, 4)),
}
SMALLER = {"resnet": (nn.ResNet(blocks=(1, 1), width=2), (3, 4, 3, 2))}
BOUND = {name: (network.bind(2), shape) for name, (network, shape) in (NETWORKS | PERCEPTRONS | SMALLER).items()}
EVERY = {**BOUND, "equinox": IMPORTED["equinox"], **FUNCTIONS}


class Case(NamedTuple):
    """A network with two to four points, its parameters in double precision, and its layers."""

    network: nn.Network
    params: Any
    x: jax.Array
    found: nn.LinearLayers


@pytest.fixture(scope="module", params=EVERY.values(), ids=EVERY)
def case(request):
    network, shape = request.param
    with jax.enable_x64(True):
        x = normal((shape[0] if shape[0] < 5 else 2, *shape[1:]))
        params = filled(network, x)
        return Case(network, params, x, find_linear_layers(network, params, x))


def normal(shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


def product(call):
    z = call.inputs() @ call.weight
    return z if call.bias is None else z + call.bias[None, None, :]


def covered(found):
    weights = [layer.weight for layer in found.layers]
    return weights + [layer.bias for layer in found.layers if layer.bias is not None]


def test_the_networks_own_outputs_come_back(case, x64):
    """For a single point, where axes of points and of size one are alike; the other laws have more."""

    @jax.jit
    def run(params, x):
        own = lambda call: call.outputs()
        return case.network.apply(params, x), *(case.found.apply(params, x, handler) for handler in (own, product))

    expected, same, by_product = run(case.params, case.x[:1])
    np.testing.assert_allclose(same, expected, **CLOSE)
    np.testing.assert_allclose(by_product, expected, **CLOSE)


def test_every_leaf_is_covered_once_or_named(case):
    paths = covered(case.found) + list(case.found.others)
    assert sorted(paths) == sorted(tree.named_leaves(case.params))
    assert all(case.found.others.values())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_leaf_of_the_plain_functions_is_found(name):
    expected = {"b": "added, but not as the bias of a layer"} if name == "alone_and_with_bias" else {}
    assert find(*FUNCTIONS[name]).others == expected


def test_jacobian_is_inputs_times_slopes(case, x64):
    """∂f/∂W[i, o] = Σ_{p, s} h[p, s, i] ∂f/∂z[p, s, o] and ∂f/∂b[o] = Σ_{p, s} ∂f/∂z[p, s, o], the whole Jacobian."""
    layers, num_points = case.found.layers, len(case.x)

    def shifted(shifts):
        inputs = {}

        def handler(call):
            inputs[call.layer.weight] = call.inputs()
            return call.outputs() + shifts[call.layer.weight]

        return case.found.apply(case.params, case.x, handler), inputs

    zeros = {layer.weight: np.zeros((num_points, layer.num_positions, layer.num_outputs)) for layer in layers}
    plain = lambda params: case.network.apply(params, case.x)
    both = jax.jit(lambda shifts, params: (jax.jacrev(shifted, has_aux=True)(shifts), jax.jacrev(plain)(params)))
    (slopes, inputs), expected = jax.tree.map(np.asarray, both(zeros, case.params))
    rows = {path: leaf.reshape(leaf.shape[0] * leaf.shape[1], -1) for path, leaf in tree.named_leaves(expected).items()}
    for layer in layers:
        slope = slopes[layer.weight].reshape(-1, *zeros[layer.weight].shape)
        by_weight = np.einsum("psi,rpso->rio", inputs[layer.weight], slope)
        np.testing.assert_allclose(by_weight, rows[layer.weight][:, nn.canonical_indices(layer)], **CLOSE)
        if layer.bias is not None:
            indices = nn.canonical_bias_indices(layer)
            np.testing.assert_allclose(slope.sum((1, 2)), rows[layer.bias][:, indices], **CLOSE)


def test_canonical_forms_are_rearrangements(case, x64):
    """There and back bit for bit, and as the indices say."""
    leaves = tree.named_leaves(case.params)
    forms = [
        (layer, layer.weight, nn.canonical_weight, nn.leaf_from_canonical, nn.canonical_indices)
        for layer in case.found.layers
    ] + [
        (layer, layer.bias, nn.canonical_bias, nn.bias_from_canonical, nn.canonical_bias_indices)
        for layer in case.found.layers
        if layer.bias is not None
    ]

    @jax.jit
    def there_and_back(leaves):
        canonical = [forward(layer, leaves[path]) for layer, path, forward, _, _ in forms]
        return canonical, [form[3](form[0], matrix) for form, matrix in zip(forms, canonical, strict=True)]

    for (layer, path, _, _, indices), matrix, leaf in zip(forms, *there_and_back(leaves), strict=True):
        np.testing.assert_array_equal(leaf, leaves[path])
        np.testing.assert_array_equal(np.asarray(leaves[path]).reshape(-1)[indices(layer)], matrix)


def test_a_handler_may_use_other_weights_and_other_inputs(case, x64):
    other = filled(case.network, case.x, seed=5)
    leaves = tree.named_leaves(other)
    kept = [
        leaves[path] if path in covered(case.found) else leaf for path, leaf in tree.named_leaves(case.params).items()
    ]
    mixed = jax.tree.unflatten(jax.tree.structure(case.params), kept)
    squares = []

    def handler(call):
        layer = call.layer
        bias = None if layer.bias is None else nn.canonical_bias(layer, leaves[layer.bias])
        squares.append((call.transformed(jnp.square).linear(call.weight), jnp.square(call.inputs()) @ call.weight))
        return call.linear(nn.canonical_weight(layer, leaves[layer.weight]), bias)

    def both(params, x):
        squares.clear()
        return case.found.apply(params, x, handler), case.network.apply(mixed, x), list(squares)

    made, expected, squared = jax.jit(both)(case.params, case.x)
    np.testing.assert_allclose(made, expected, **CLOSE)
    for by_operation, by_product in squared:
        np.testing.assert_allclose(by_operation, by_product, **CLOSE)


SOME = {name: EVERY[name] for name in ("mlp", "convnet_valid", "heads", "equinox")}


@pytest.mark.parametrize(("network", "shape"), SOME.values(), ids=SOME)
def test_gradients_and_axes_of_parameters_pass_through(network, shape, x64):
    """As do more points than the layers were found with, and the layers themselves as an argument."""
    found = find_linear_layers(network, filled(network, normal((2, *shape[1:]))), normal((2, *shape[1:])))
    x = normal(shape)
    stacked = tree.stack([filled(network, x), filled(network, x, seed=5)])

    @eqx.filter_jit
    def slopes(found, stacked):
        plain = lambda params: jnp.sum(jnp.sin(network.apply(params, x)))
        handled = lambda params: jnp.sum(jnp.sin(found.apply(params, x, product)))
        return jax.vmap(jax.grad(plain))(stacked), jax.vmap(jax.grad(handled))(stacked)

    expected, made = slopes(found, stacked)
    jax.tree.map(lambda left, right: np.testing.assert_allclose(left, right, **CLOSE), made, expected)


def facts(found):
    return [(la.weight, la.bias, la.kind, la.num_positions, la.num_inputs, la.num_outputs) for la in found.layers]


def find(network, shape):
    x = jax.ShapeDtypeStruct(shape, jnp.float32)
    return find_linear_layers(network, jax.eval_shape(network.init, jax.random.key(0), x), x)


def test_layers_of_known_networks():
    """In the order of execution, which is not the order of the leaves."""
    found = find(*BOUND["cnn_lstm"])
    assert facts(found) == [
        ("conv0/kernel", "conv0/bias", "convolution", 18, 9, 4),
        ("conv1/kernel", "conv1/bias", "convolution", 9, 12, 3),
        ("lstm/input_weight", "lstm/bias", "dense", 4, 3, 20),
        ("output/weight", "output/bias", "dense", 1, 5, 2),
    ]
    assert found.others == {"lstm/recurrent_weight": "enters a scan"}
    assert found.last is found.layers[-1]
    assert facts(find(*BOUND["without_bias"])) == [
        ("layer0/weight", None, "dense", 1, 4, 5),
        ("layer1/weight", None, "dense", 1, 5, 4),
        ("layer2/weight", None, "dense", 1, 4, 2),
    ]


def test_a_residual_network_of_twenty_layers():
    found = find(nn.ResNet(blocks=(3, 3, 3), width=4, outputs=10), (2, 8, 8, 3))
    assert len(found.layers) == 19 + 2 + 1  # 3 × 3 kernels, shortcuts, the readout
    strides = [layer.window.strides for layer in found.layers if layer.window is not None]
    assert strides.count((2, 2)) == 4
    assert all(layer.bias for layer in found.layers)
    assert {path.rsplit("/")[-2] for path in found.others} == {"norm"}
    assert found.last is not None and found.last.weight == "output/weight"


def test_rotated_kernels_are_left_out():
    found = find(*BOUND["p4"])
    assert facts(found) == [("output/weight", "output/bias", "dense", 1, 4, 2)]
    assert found.others["conv0/kernel"] == "used more than once"


def test_where_points_lie():
    """The MLP keeps its points last on CPU; the leaf is (input, output) all the same."""
    (layer, _, _) = find(*BOUND["mlp"]).layers
    assert (layer.incoming.order, layer.outgoing.order, layer.weight_order) == ((1, 0), (1, 0), (0, 1))
    (layer,) = find(*EVERY["points_in_the_middle"]).layers
    assert (layer.incoming.order, layer.outgoing.order, layer.weight_order) == ((1, 2, 0), (1, 2, 0), (1, 0))


def run_scan(params, x):
    return jax.lax.scan(lambda h, _: (jnp.tanh(h @ params["w"]), None), x, length=2)[0]


@jax.custom_jvp
def own_derivative(weight, h):
    return h @ weight


own_derivative.defjvp(lambda primals, tangents: (own_derivative(*primals), jnp.zeros(())))


REFUSED = {
    "tied": (lambda p, x: jnp.tanh(x @ p["w"]) @ p["w"], "used more than once"),
    "tied_in_one_call": (lambda p, x: jax.jit(lambda a, b: x @ (a + b))(p["w"], p["w"]), "used more than once"),
    "penalised": (lambda p, x: x @ p["w"] + jnp.sum(p["w"] ** 2), "used more than once"),
    "masked": (lambda p, x: x @ (p["w"] * jnp.eye(4)), "no linear layer, meets mul"),
    "gathered": (lambda p, x: p["w"][jnp.argmax(x, axis=1)], "no linear layer, meets gather"),
    "rounded_to_integers": (lambda p, x: x @ p["w"].astype(int).astype(x.dtype), "meets convert_element_type"),
    "reshaped": (lambda p, x: x.reshape(-1, 2, 2).sum(1) @ p["w"].reshape(2, 8), "no linear layer, meets reshape"),
    "repeated": (lambda p, x: x @ jnp.repeat(p["w"][:, None], 2, axis=1).reshape(4, 8), "no linear layer, meets"),
    "broadcast": (
        lambda p, x: jax.lax.dot_general(x, jnp.broadcast_to(p["w"][None], (2, 4, 4)), (((1,), (1,)), ((), ()))).sum(1),
        "repeated before it is used",
    ),
    "scanned": (run_scan, "enters a scan"),
    "own_derivative": (lambda p, x: own_derivative(p["w"], x), "enters a function with its own derivative"),
    "stopped": (lambda p, x: x @ jax.lax.stop_gradient(p["w"]), "no linear layer, meets"),
    "unused": (lambda p, x: (x @ p["w"], x)[1], "not used"),
    "without_inputs": (lambda p, x: jnp.ones((len(x), 4)) @ p["w"], "multiplies no function of the inputs"),
    "without_points": (lambda p, x: x + (jnp.sum(x, axis=0) @ p["w"])[None], "multiplies no points"),
    "merged_points": (
        lambda p, x: (jnp.stack([x, -x], axis=1).reshape(-1, 4) @ p["w"]).reshape(-1, 8),
        "multiplies points that have no axis of their own",
    ),
    "pairs_of_points": (
        lambda p, x: (jnp.abs(x[:, None] - x[None]) @ p["w"]).sum(1),
        "multiplies points that have no axis of their own",
    ),
    "a_batch_for_each_row": (lambda p, x: jnp.einsum("pi,io->pio", x, p["w"]).sum(1), "a product for each"),
    "groups": (
        lambda p, x: jnp.einsum("pgi,gio->pgo", x.reshape(-1, 4, 1), p["w"][:, None, :]).sum(1),
        "a product for each of several groups",
    ),
    "grouped_convolution": (
        lambda p, x: convolve(x[:, None], p["w"][:, None], ("NWC", "WIO", "NWC"), (1,), feature_group_count=4)[:, 0],
        "grouped convolution",
    ),
    "a_kernel_of_points": (
        lambda p, x: convolve(p["w"][None, None], x[:, None, None], ("NCHW", "OIHW", "NCHW"))[0].sum(1),
        "a kernel slides over it",
    ),
    "slides_over_points": (
        lambda p, x: convolve(x[None], p["w"][None], ("NWC", "WIO", "NWC"), (1,))[0],
        "points are no batch of the convolution",
    ),
    "depends_on_number": (
        lambda p, x: x @ p["w"] if len(x) == 3 else jnp.tanh(x) @ p["w"],
        "the program depends on the number of points",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("apply", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_leaf_that_is_no_weight_is_named(apply, reason):
    found = find(function(apply, w=(4, 4)), (3, 4))
    assert found.layers == () and found.last is None
    assert found.others["w"].startswith("no linear layer, " * reason.startswith("meets") + reason)


BESIDES = {
    "doubled": (lambda p, x: x @ p["w"] + 2 * p["b"][None], "no linear layer, meets mul"),
    "used_twice": (lambda p, x: x @ p["w"] + p["b"][None] + jnp.sin(p["b"])[None], "used more than once"),
    "after_tanh": (lambda p, x: jnp.tanh(x @ p["w"]) + p["b"][None], "added, but not as the bias of a layer"),
    "to_a_sum": (lambda p, x: (x @ p["w"] + x) + p["b"][None], "added, but not as the bias of a layer"),
    "subtracted": (lambda p, x: x @ p["w"] - p["b"][None], "no linear layer, meets sub"),
    "to_outputs_used_alone": (alone_and_with_bias, "added, but not as the bias of a layer"),
    "along_positions": (
        lambda p, x: to_outputs(jnp.stack([x] * 4, axis=1) @ p["w"] + p["b"][None, :, None]),
        "added, but not as the bias of a layer",
    ),
    "along_new_positions": (
        lambda p, x: to_outputs((x @ p["w"])[:, None, :] + p["b"][None, :, None]),
        "added, but not as the bias of a layer",
    ),
    "to_repeated_outputs": (
        lambda p, x: to_outputs(jnp.broadcast_to((x @ p["w"])[:, None], (len(x), 2, 4)) + p["b"][None, None]),
        "added, but not as the bias of a layer",
    ),
    "repeated_over_outputs": (
        lambda p, x: to_outputs(jnp.einsum("pi,io->po", x, p["w"])[..., None] + p["b"][None, None]),
        "added, but not as the bias of a layer",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("apply", "reason"), BESIDES.values(), ids=BESIDES)
def test_a_leaf_that_is_no_bias_is_named_and_the_weight_still_found(apply, reason, x64):
    network, x = function(apply, w=(4, 4), b=(4,)), normal((3, 4))
    params = filled(network, x)
    found = find_linear_layers(network, params, x)
    assert [(layer.weight, layer.bias) for layer in found.layers] == [("w", None)]
    assert found.others == {"b": reason}
    np.testing.assert_allclose(found.apply(params, x, product), network.apply(params, x), **CLOSE)


def test_a_scalar_is_no_bias_of_several_outputs():
    apply = lambda p, x: x @ p["w"] + p["b"][None, None]
    assert [layer.bias for layer in find(function(apply, w=(4, 2), b=()), (3, 4)).layers] == [None]
    assert [layer.bias for layer in find(function(apply, w=(4, 1), b=()), (3, 4)).layers] == ["b"]


def test_a_leaf_may_be_the_output():
    found = find(function(lambda p, x: jnp.broadcast_to(p["w"][None], (len(x), 4)), w=(4,)), (3, 4))
    assert found.others == {"w": "is itself an output"}


LAST = {
    "plain": (lambda p, x: x @ p["w"] + p["b"][None], True),
    "moved": (lambda p, x: jnp.squeeze((p["w"].T @ x.T + p["b"][:, None]).T[:, None], axis=1), True),
    "without_bias": (lambda p, x: jnp.sin(x + p["b"][None]) @ p["w"], True),
    "scaled": (lambda p, x: 2 * (x @ p["w"] + p["b"][None]), False),
    "skip": (lambda p, x: x + x @ p["w"], False),
    "other_bias": (lambda p, x: x @ p["w"] + 2 * p["b"][None], False),
    "rounded": (lambda p, x: (x @ p["w"]).astype(jnp.float16), False),
    "some": (lambda p, x: (x @ p["w"])[:, :2], False),
    "squashed": (lambda p, x: jax.nn.softmax(x @ p["w"] + p["b"][None]), False),
}


@pytest.mark.parametrize(("apply", "is_last"), LAST.values(), ids=LAST)
def test_the_last_layer_makes_the_outputs(apply, is_last):
    found = find(function(apply, w=(4, 4), b=(4,)), (3, 4))
    assert len(found.layers) == 1
    assert found.last == (found.layers[0] if is_last else None)


def test_derivatives_of_activations_stay_their_own():
    """The derivative of relu at zero is zero by JAX's own rule, and one half by the steps inside."""
    network = function(lambda p, x: jax.nn.relu(x @ p["w"]), w=(4, 2))
    params, x = {"w": jnp.zeros((4, 2))}, jnp.ones((3, 4))
    found = find_linear_layers(network, params, x)
    slope = jax.grad(lambda params: jnp.sum(found.apply(params, x, lambda call: call.outputs())))(params)
    np.testing.assert_array_equal(slope["w"], 0.0)


def test_a_rounded_weight_is_rounded_by_the_operation(x64):
    network = function(lambda p, x: x.astype(jnp.float32) @ p["w"].astype(jnp.float32), w=(4, 2))
    x = normal((3, 4))
    params = filled(network, x)
    found = find_linear_layers(network, params, x)
    expected = network.apply(params, x)
    made = found.apply(params, x, lambda call: call.outputs())
    np.testing.assert_array_equal(made, expected)
    by_product = found.apply(params, x, product)
    assert made.dtype == by_product.dtype == jnp.float32
    np.testing.assert_allclose(by_product, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_layers_with_a_derivative_of_their_own_are_left_out(kind):
    found = find(nn.MLP(hidden=(5,), outputs=2, precision=kind), (3, 4))
    assert found.layers == ()
    assert set(found.others.values()) == {"enters a function with its own derivative"}


def test_handlers_are_called_once_in_order():
    network, shape = BOUND["mlp"]
    x = normal(shape)
    params = filled(network, x)
    called = []
    handler = lambda call: (called.append(call.layer), call.outputs())[1]
    found = find_linear_layers(network, params, x)
    jax.eval_shape(lambda params: found.apply(params, x, handler), params)
    assert called == list(found.layers)


def test_mistakes_are_named(unchecked):
    network, shape = BOUND["convnet"]
    x = normal(shape)
    params = filled(network, x)
    found = find_linear_layers(network, params, x)
    with pytest.raises(InputError, match=r"outputs of shape \(7, 72, 3\) for conv0/kernel, got \(3,\). Return"):
        found.apply(params, x, lambda call: call.bias)
    with pytest.raises(InputError, match="but for the number of points, got shapes for which the layers are not the 4"):
        found.apply(params, x[:, :, :-1], product)
    with pytest.raises(InputError, match=r"`x` must have a leading axis of points, got shape \(0, 8, 9, 2\)"):
        found.apply(params, x[:0], product)
    mixed = function(lambda p, x: jnp.ones((3, 3)) @ x @ p["w"], w=(4, 4))
    with pytest.raises(InputError, match="must take any number of points, got an error with 6: dot_general"):
        find(mixed, (3, 4))
    several = function(lambda p, x: (x @ p["w"], x), w=(4, 4))
    with pytest.raises(InputError, match="A network must return one array, got 2. Stack"):
        find(several, (3, 4))
