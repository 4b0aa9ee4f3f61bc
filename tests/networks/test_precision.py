"""Precision: the products against their equations, and networks that round against one that does not."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import weightscape as ws
from weightscape.core import InputError, decode, encode, tree
from weightscape.core.checks import InputTypeError
from weightscape.networks.precision import count_parts

HALVES = ("float16", "bfloat16")
halves = pytest.mark.parametrize("kind", HALVES)
POINTS, INPUTS, UNITS = 48, 20, 6
UNIT_ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


def normal(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def rounded(x, kind):
    return np.asarray(x.astype(kind)).astype(np.float64)


def layer(*, bias=True):
    params = {"weight": normal(INPUTS, UNITS, seed=1), "bias": normal(UNITS, seed=2)}
    return params if bias else {"weight": params["weight"]}


def network(precision, **options):
    return ws.networks.MLP(hidden=(16, 16), outputs=3, precision=precision, **options)


def slopes(net, params, x):
    """The outputs, and the gradient of a smooth function of them."""
    loss = lambda params: jnp.sum(jnp.cos(jnp.arange(3.0))[None, :] * jnp.tanh(net.apply(params, x)))
    return jax.jit(net.apply)(params, x), jax.jit(jax.grad(loss))(params)


def flat(leaves):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(leaves)]).astype(np.float64)


def assert_is_product(came, left, right, *, least=0.0):
    """`came` is left @ right to the rounding of a float32 sum of K terms, K 2⁻²⁴ Σ|left||right|, or to `least`."""
    bound = left.shape[1] * 2.0**-24 * (np.abs(left) @ np.abs(right)) + least * np.abs(left @ right)
    assert np.all(np.abs(np.asarray(came, np.float64) - left @ right) <= bound)


@halves
@pytest.mark.parametrize("num_points", [POINTS, 7])  # cut into parts, and whole
def test_products_and_derivatives_are_their_equations(kind, num_points):
    params, h, slope = layer(), normal(num_points, INPUTS), normal(num_points, UNITS, seed=3)
    z, pull = jax.vjp(jax.jit(ws.networks.PRECISIONS[kind].dense), params | {"bias": jnp.zeros(UNITS)}, h)
    of_params, of_h = jax.jit(pull)(slope)
    weight, left, right = (rounded(factor, kind) for factor in (params["weight"], h, slope))
    assert_is_product(z, left, weight)
    assert_is_product(of_params["weight"], left.T, right)
    assert_is_product(of_params["bias"][None, :], np.ones((1, num_points)), np.asarray(slope, np.float64))
    # ∂h is handed on in the half type: one rounding more, and float16 has no numbers between 0 and 6e-8.
    assert_is_product(of_h, right, weight.T, least=1.01 * UNIT_ROUNDOFF[kind])


@halves
def test_bias_is_added_and_may_be_missing(kind):
    h, precision = normal(POINTS, INPUTS), ws.networks.PRECISIONS[kind]
    without = precision.dense(layer(bias=False), h)
    np.testing.assert_array_equal(precision.dense(layer(), h), without + layer()["bias"][None, :])
    gradient = jax.grad(lambda params: jnp.sum(precision.dense(params, h) ** 2))(layer(bias=False))
    assert list(gradient) == ["weight"]


@halves
def test_hidden_layers_are_kept_rounded(kind):
    h, precision = normal(POINTS, INPUTS), ws.networks.PRECISIONS[kind]
    hidden, whole = precision.hidden(layer(bias=False), h), precision.dense(layer(bias=False), h)
    assert hidden.dtype == jnp.dtype(kind)
    np.testing.assert_array_equal(hidden, whole.astype(kind))


def test_on_a_cpu_float32_is_the_plain_equation_bit_for_bit():
    x = normal(POINTS, INPUTS)
    params = network("float32").init(jax.random.key(0), x)

    def plain(params, h):
        for i in range(3):
            z = h @ params[f"layer{i}"]["weight"] + params[f"layer{i}"]["bias"][None, :]
            h = jnp.tanh(z) if i < 2 else z
        return h

    expected = slopes(ws.networks.Function(network("float32").init, plain), params, x)
    for came, wanted in zip(slopes(network("float32"), params, x), expected, strict=True):
        np.testing.assert_array_equal(flat(came), flat(wanted))


def test_float32_asks_for_whole_products_forwards_and_backwards():
    x = normal(POINTS, INPUTS)
    params = network("float32").init(jax.random.key(0), x)
    for name, highest in (("float32", True), ("default", False)):
        net = network(name)
        program = str(jax.make_jaxpr(jax.grad(lambda params, net=net: jnp.sum(net.apply(params, x))))(params))
        assert program.count("dot_general") >= 8
        assert program.count("HIGHEST") == (2 * program.count("dot_general") if highest else 0)


@pytest.mark.parametrize(
    "options", [{}, {"skip": True, "normalisation": ws.networks.LayerNorm()}, {"bias": False}], ids=str
)
def test_rounded_networks_are_close_to_the_whole_one(options):
    x = normal(POINTS, INPUTS)
    params = network("default", **options).init(jax.random.key(0), x)
    outputs, gradient = slopes(network("default", **options), params, x)
    distance = {}
    for kind in HALVES:
        near, slope = slopes(network(kind, **options), params, x)
        assert {leaf.dtype for leaf in (near, *jax.tree.leaves(slope))} == {jnp.dtype("float32")}
        distance[kind] = [
            np.linalg.norm(flat(a) - flat(b)) / np.linalg.norm(flat(b)) for a, b in ((near, outputs), (slope, gradient))
        ]
        # Each of three layers rounds h, W, z and b forwards, and ∂z, W and ∂h backwards.
        assert max(distance[kind]) < 21 * UNIT_ROUNDOFF[kind]
    # The types differ by a factor of 8 in their rounding; a network that does not round has no distance at all.
    assert all(2 < coarse / fine < 32 for fine, coarse in zip(distance["float16"], distance["bfloat16"], strict=True))


@halves
def test_parameters_may_carry_an_axis(kind):
    net, x = network(kind), normal(POINTS, INPUTS)
    several = [net.init(jax.random.key(i), x) for i in range(3)]
    loss = jax.grad(lambda params: jnp.sum(jnp.tanh(net.apply(params, x))))
    together = jax.jit(jax.vmap(loss))(tree.stack(several))
    for i, params in enumerate(several):
        one = jax.tree.map(lambda leaf, i=i: leaf[i], together)
        # The same sums in another order may round a hidden unit the other way.
        assert np.linalg.norm(flat(one) - flat(jax.jit(loss)(params))) < UNIT_ROUNDOFF[kind] * np.linalg.norm(flat(one))


@halves
def test_inputs_may_be_stored_rounded(kind):
    net, x = network(kind), normal(POINTS, INPUTS)
    stored = net.precision.inputs(x)
    params = net.init(jax.random.key(0), stored)
    assert stored.dtype == jnp.dtype(kind)
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float32")}
    np.testing.assert_array_equal(jax.jit(net.apply)(params, stored), jax.jit(net.apply)(params, x))


def test_other_precisions_store_inputs_as_they_are():
    x = normal(POINTS, INPUTS)
    assert all(ws.networks.PRECISIONS[name].inputs(x) is x for name in ("default", "float32"))


@halves
def test_double_parameters_stay_double(kind, x64):
    x = jnp.asarray(np.random.default_rng(0).normal(size=(8, 4)))
    net = ws.networks.MLP(hidden=(5,), outputs=2, precision=kind)
    params = net.init(jax.random.key(0), x)
    gradient = jax.grad(lambda params: jnp.sum(net.apply(params, x)))(params)
    assert {leaf.dtype for leaf in (net.apply(params, x), *jax.tree.leaves(gradient))} == {jnp.dtype("float64")}


def test_alike_networks_share_a_program_and_new_numbers_compile_nothing():
    count = 0

    @eqx.filter_jit
    def gradient(net, params, x):
        nonlocal count
        count += 1
        return jax.grad(lambda params: jnp.sum(net.apply(params, x)))(params)

    x = normal(POINTS, INPUTS)
    for i, kind in enumerate(("float16", "float16", "bfloat16")):
        gradient(network(kind), network(kind).init(jax.random.key(i), x), x + i)
    assert count == 2


@pytest.mark.parametrize("name", ws.networks.PRECISIONS)
def test_storage_gives_the_same_network(name):
    assert decode(json.loads(json.dumps(encode(network(name)).tree))) == network(name)


def test_unknown_precisions_are_refused(unchecked):
    with pytest.raises(InputError, match="Did you mean 'bfloat16'"):
        network("bfloat61")
    with pytest.raises(InputError, match="`kind` of Half must be a known name, got 'float8'"):
        ws.networks.Half("float8")
    with pytest.raises(InputTypeError, match="`precision` must be a name or a Precision, got 16"):
        network(16)


@pytest.mark.parametrize(
    ("num_points", "results", "parts"),
    # 60,000 = 8 · 7,500. The first layer has 7 · 2 blocks of results, so at most 9 parts, and 7 to 9 do not divide
    # 7,500; the last has 4, so at most 33, and 31 to 33 do not.
    [(60_000, (784, 512), 6), (60_000, (512, 10), 30), (7, (5, 5), 1), (61, (5, 5), 1), (800, (9999, 9999), 1)],
)
def test_points_are_cut_into_equal_aligned_parts(num_points, results, parts):
    assert count_parts(num_points, *results) == parts
