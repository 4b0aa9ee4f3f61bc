"""Metanets as programs: shapes, gradients, vectorising, compiling once, and what they are told."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.metanet.examples import SMALL, distance, doubles, metanet, reader, symmetry_of
from tests.symmetry.zoo import CASES, weights

from weightscape.core.checks import InputError
from weightscape.metanet import ChannelScaling, Features, Metanet, Reader, Sizes, adam_with_warmup, cost, train
from weightscape.metanet.fixed import Fixed, split_trained

NETWORKS = [pytest.param(name, marks=[pytest.mark.slow] * (name != "tanh")) for name in
            ("silu", "tanh", "convnet", "resnet", "lstm")]  # fmt: skip

BLOCKLESS = Sizes(width=8, edge_width=4, num_blocks=0, num_heads=2)
"""The first and last maps alone, which is where companions enter."""


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", NETWORKS)
def test_gradient_vmap_and_compiling_once(name):
    params, _ = doubles(name)
    module = metanet(name, params)
    traces = []

    @eqx.filter_jit
    def loss_and_slope(module, time, params, direction):
        traces.append(None)
        loss = lambda params: sum(jnp.sum(jnp.sin(leaf)) for leaf in jax.tree.leaves(module(time, params)))
        value, gradient = jax.value_and_grad(loss)(params)
        return value, sum(jnp.vdot(a, b) for a, b in zip(*map(jax.tree.leaves, (gradient, direction)), strict=True))

    direction = jax.tree.map(lambda leaf: jnp.cos(7.0 * leaf), params)
    moved = lambda step: jax.tree.map(lambda leaf, d: leaf + step * d, params, direction)
    time = jnp.asarray(0.3)
    values = [loss_and_slope(module, time, moved(step), direction)[0] for step in (-1e-4, 1e-4)]
    slope = loss_and_slope(module, time, params, direction)[1]
    # The central difference is off by its third derivative times step², 1e-8, and by rounding over the step, 1e-12.
    assert abs((values[1] - values[0]) / 2e-4 - slope) < 1e-5 * (1 + abs(slope))
    loss_and_slope(metanet(name, params, sizes=SMALL), jnp.asarray(0.7), moved(0.1), direction)
    assert len(traces) == 1


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["tanh", pytest.param("lstm", marks=pytest.mark.slow)])
def test_many_networks_at_once_are_as_one_by_one(name):
    params, _ = doubles(name)
    module = metanet(name, params)
    several = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf + 0.1, 0.5 * leaf]), params)
    at_once = eqx.filter_jit(lambda module, several: jax.vmap(lambda one: module(0.2, one))(several))(module, several)
    call = eqx.filter_jit(lambda module, one: module(0.2, one))
    row = lambda tree, i: jax.tree.map(lambda leaf: leaf[i], tree)
    for i in range(3):
        assert distance(row(at_once, i), call(module, row(several, i))) < 1e-12


def test_a_new_metanet_says_zero_and_keeps_shapes_and_types():
    params = weights(CASES["tanh"])
    write = eqx.filter_jit(lambda module: module(0.5, params))
    fresh = write(Metanet(jax.random.key(0), symmetry_of("tanh"), params, sizes=SMALL))
    assert jax.tree.structure(fresh) == jax.tree.structure(params)
    for new, old in zip(jax.tree.leaves(fresh), jax.tree.leaves(params), strict=True):
        assert (new.shape, new.dtype) == (old.shape, old.dtype)
        np.testing.assert_array_equal(new, 0)
    seer = Reader(jax.random.key(0), symmetry_of("tanh"), params, num_outputs=4, sizes=SMALL)
    np.testing.assert_array_equal(eqx.filter_jit(lambda module: module(params))(seer), np.zeros(4))


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_every_weight_bears_on_every_number_that_is_written():
    """With two blocks nothing is cut off: each entry of the Jacobian differs from zero."""
    params, _ = doubles("tanh")
    module = metanet("tanh", params, sizes=Sizes(width=8, edge_width=4, num_blocks=2, num_heads=2))
    leaves, structure = jax.tree.flatten(params)
    write = lambda leaves: jax.tree.leaves(module(0.3, jax.tree.unflatten(structure, leaves)))
    jacobian = jax.jit(jax.jacfwd(write))(leaves)
    for row in jacobian:
        for entry in row:
            assert float(jnp.min(jnp.abs(entry))) > 1e-12


@pytest.mark.usefixtures("x64")
def test_time_and_context_are_heard():
    params, _ = doubles("silu")
    sizes = Sizes(width=8, edge_width=4, num_blocks=1, num_heads=2, context_size=2)
    module, seer = metanet("silu", params, sizes=sizes), reader("silu", params, sizes=sizes)
    first, second = jnp.asarray([1.0, 0.0]), jnp.asarray([0.0, 1.0])
    write = eqx.filter_jit(lambda module, time, context: module(time, params, context))
    read = eqx.filter_jit(lambda module, context: module(params, context))
    early, late = jnp.asarray(0.1), jnp.asarray(0.9)
    assert distance(write(module, early, first), write(module, late, first)) > 1e-3
    assert distance(write(module, early, first), write(module, early, second)) > 1e-3
    assert distance(read(seer, first), read(seer, second)) > 1e-3
    with pytest.raises(InputError, match="must have 2 entries, got 0"):
        module(0.1, params)
    with pytest.raises(InputError, match="must have 2 entries, got 3"):
        seer(params, jnp.ones(3))


def test_blocks_in_half_precision_agree_to_their_rounding():
    params = weights(CASES["tanh"])
    full = metanet("tanh", params)
    half = metanet("tanh", params, block_type=jnp.bfloat16)
    write = eqx.filter_jit(lambda module: module(0.3, params))
    written, rough = write(full), write(half)
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(rough))
    # bfloat16 has eight bits; a few dozen roundings add up to some hundredths.
    assert 0 < distance(rough, written) < 0.1


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["relu", pytest.param("attention", marks=pytest.mark.slow)])
def test_a_unit_without_weights_has_finite_gradients(name):
    params, _ = doubles(name)
    leaf = {"relu": lambda p: p["layer0"]["weight"], "attention": lambda p: p["value"]}[name]
    dead = eqx.tree_at(leaf, params, leaf(params).at[:, 0].set(0.0))
    module = reader(name, params)
    gradient = jax.jit(jax.grad(lambda p: jnp.sum(module(p))))(dead)
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(gradient))


@pytest.mark.usefixtures("x64")
def test_scaled_weights_have_mean_zero_and_variance_one():
    symmetry = symmetry_of("tanh")
    params, _ = doubles("tanh")
    keys = jax.random.split(jax.random.key(0), 50)
    shift = lambda key: jax.tree.map(lambda leaf: 3.0 + leaf * jax.random.normal(key), params)
    networks = jax.vmap(shift)(keys)
    features = Features(symmetry)
    parts = jax.vmap(lambda one: ChannelScaling.of(symmetry, networks)(features.split(one)))(networks)
    for place, part in zip(features.places, parts, strict=True):
        rows = np.asarray(part).reshape(-1, place.num_channels)
        np.testing.assert_allclose(np.mean(rows**2, axis=0), 1.0, rtol=1e-9)
        if not place.is_charged:
            np.testing.assert_allclose(np.mean(rows, axis=0), 0.0, atol=1e-9)


def test_scaling_is_not_trained():
    params = weights(CASES["tanh"])
    module = metanet("tanh", params)
    loss = lambda module: sum(jnp.sum(leaf) for leaf in jax.tree.leaves(module(0.5, params)))
    gradient = eqx.filter_jit(eqx.filter_grad(loss))(module).trunk.scaling
    assert all(bool(jnp.all(leaf == 0)) for leaf in jax.tree.leaves(gradient))
    settings = adam_with_warmup(1e-2, 3, weight_decay=10.0)
    fixed = eqx.tree_at(lambda m: m.trunk.scaling, module, Fixed(jnp.ones((2, 2))))
    total = lambda model, key, batch: sum(jnp.sum(leaf) for leaf in jax.tree.leaves(split_trained(model)[0]))
    after = train(jax.random.key(0), fixed, total, jnp.ones((4, 1)), num_steps=3, optimiser=settings).model
    np.testing.assert_array_equal(after.trunk.scaling.tree, 1.0)
    assert not np.array_equal(after.condition.constant, module.condition.constant)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["tanh", pytest.param("lstm", marks=pytest.mark.slow)])
def test_companions_are_moved_with_the_weights(name):
    """v(t, g θ, g c) = g v(t, θ, c); a companion that stays behind breaks it, and a companion is heard."""
    params, _ = doubles(name)
    symmetry = symmetry_of(name)
    module = metanet(name, params, sizes=BLOCKLESS if name == "tanh" else SMALL, num_companions=2)
    first = jax.tree.map(lambda leaf: jnp.cos(5.0 * leaf), params)
    second = jax.tree.map(lambda leaf: leaf**2 - 0.3, params)
    write = eqx.filter_jit(lambda module, *trees: module(0.3, trees[0], companions=trees[1:]))
    written = write(module, params, first, second)
    for seed in range(2):
        element = symmetry.random(jax.random.key(seed))
        move = lambda tree, element=element: symmetry.apply(tree, element)
        moved = write(module, move(params), move(first), move(second))
        # The sums behind a number have some hundred terms of rounding 1e-16.
        assert distance(moved, move(written)) < 1e-10
        assert distance(write(module, move(params), first, move(second)), move(written)) > 1e-3
    assert distance(write(module, params, second, first), written) > 1e-3


@pytest.mark.usefixtures("x64")
def test_companions_that_are_zero_say_nothing():
    """All that a companion adds is linear in it, or in log(1 + c²), without a constant."""
    params, _ = doubles("tanh")
    companion = jax.tree.map(jnp.zeros_like, params)
    told = metanet("tanh", params, sizes=BLOCKLESS, num_companions=1)
    numbers = lambda module: [leaf for leaf in jax.tree.leaves(module) if eqx.is_inexact_array(leaf)]
    plain = metanet("tanh", params, sizes=BLOCKLESS)
    # The channels of the weights come first, in the first map and in the last gates.
    cut = [
        old[tuple(slice(size) for size in new.shape)] for old, new in zip(numbers(told), numbers(plain), strict=True)
    ]
    alone = eqx.combine(jax.tree.unflatten(jax.tree.structure(eqx.filter(plain, eqx.is_inexact_array)), cut), plain)
    write = eqx.filter_jit(lambda module, *companions: module(0.3, params, companions=companions))
    assert distance(write(told, companion), write(alone)) < 1e-12


def test_companions_are_refused_where_there_are_scales():
    params = weights(CASES["relu"])
    with pytest.raises(InputError, match="with companions must have a symmetry without scales, got"):
        Metanet(jax.random.key(0), symmetry_of("relu"), params, sizes=SMALL, num_companions=1)
    Metanet(jax.random.key(0), symmetry_of("relu").without_scaling(), params, sizes=SMALL, num_companions=1)


def test_cost_counts_parameters_and_grows_with_the_network():
    params = weights(CASES["tanh"])
    small, large = metanet("tanh", params), metanet("tanh", params, sizes=Sizes(width=16, edge_width=4, num_heads=2))
    costs = [cost(module, jnp.asarray(0.5), params) for module in (small, large)]
    every = sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(small, eqx.is_inexact_array)))
    counted = every - sum(leaf.size for leaf in jax.tree.leaves(small.trunk.scaling))
    assert costs[0].num_parameters == counted
    assert costs[1].num_operations > 2 * costs[0].num_operations > 0
    assert costs[1].num_bytes > costs[0].num_bytes > 0
    assert f"{counted:,} parameters" in str(costs[0])


def test_bad_input_is_named():
    params = weights(CASES["tanh"])
    module = metanet("tanh", params)
    with pytest.raises(InputError, match="must have the shapes .* got .* vmap over leading axes"):
        module(0.5, jax.tree.map(lambda leaf: leaf[None], params))
    with pytest.raises(InputError, match="`width` of Sizes must be a multiple of `num_heads`, got 10 and 4"):
        Sizes(width=10, num_heads=4)
    with pytest.raises(InputError, match="num_blocks must be at least 0, got -1"):
        Sizes(num_blocks=-1)
