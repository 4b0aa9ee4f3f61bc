"""Metanets commute with every element of the group that they are built from, and with nothing more."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.metanet.examples import KNOWN, QUICK, distance, doubles, metanet, names, probes, reader, symmetry_of

from weightscape.metanet import ChannelScaling, Features

# The sums behind a number have some hundred terms of rounding 1e-16, behind scales that spread over e^±2.
ROUNDING = 1e-10


@eqx.filter_jit
def write(module, params):
    return module(0.3, params)


@eqx.filter_jit
def read(module, params):
    return module(params)


@pytest.mark.parametrize("name", names(KNOWN))
def test_features_go_and_come_back_bit_for_bit(name):
    features = Features(symmetry_of(name))
    drawn = np.random.default_rng(0)
    for dtype in (np.float32, np.float16):
        shapes = features.symmetry.layout.shapes
        leaves = [jnp.asarray(drawn.normal(size=shape).astype(dtype)) for shape in shapes]
        params = jax.tree.unflatten(features.symmetry.layout.structure, leaves)
        parts = features.split(params)
        assert sum(part.size for part in parts) == sum(leaf.size for leaf in leaves)
        back = features.join(parts)
        assert jax.tree.structure(back) == jax.tree.structure(params)
        for new, old in zip(jax.tree.leaves(back), leaves, strict=True):
            assert new.dtype == old.dtype
            np.testing.assert_array_equal(new, old)


@pytest.mark.parametrize("name", names(KNOWN))
def test_features_are_permuted_and_flipped_as_their_places_say(name):
    symmetry = symmetry_of(name).without_scaling()
    features = Features(symmetry)
    rng = np.random.default_rng(1)
    params = jax.tree.unflatten(
        symmetry.layout.structure, [jnp.asarray(rng.normal(size=shape)) for shape in symmetry.layout.shapes]
    )
    element = symmetry.random(jax.random.key(4))
    moved = features.split(symmetry.apply(params, element))
    for place, old, new in zip(features.places, features.split(params), moved, strict=True):
        expected = np.asarray(old)
        for axis, (group, charge) in enumerate(zip(place.groups, place.charges, strict=True)):
            expected = np.take(expected, np.asarray(element.permutations[group]), axis=axis)
            flips = [np.asarray(signs) for k, signs in enumerate(element.signs[group]) if charge >> k & 1]
            shape = [-1 if i == axis else 1 for i in range(expected.ndim)]
            expected = expected * np.prod([np.ones(place.sizes[axis]), *flips], axis=0).reshape(shape)
        np.testing.assert_allclose(new, expected, rtol=1e-6)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", names(QUICK))
def test_what_is_written_moves_with_the_weights(name):
    params, _ = doubles(name)
    module, symmetry = metanet(name, params), symmetry_of(name)
    written = write(module, params)
    for seed in range(2):
        element = symmetry.random(jax.random.key(seed))
        assert distance(write(module, symmetry.apply(params, element)), symmetry.apply(written, element)) < ROUNDING


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", names(("tanh",)))
def test_what_is_read_does_not_change(name):
    params, _ = doubles(name)
    module, symmetry = reader(name, params), symmetry_of(name)
    seen = read(module, params)
    for seed in range(2):
        element = symmetry.random(jax.random.key(seed))
        assert distance(read(module, symmetry.apply(params, element)), seen) < ROUNDING


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", names(("dense_net",)))
def test_probes_and_scaling_keep_the_symmetry(name):
    params, x = doubles(name)
    symmetry = symmetry_of(name)
    several = jax.tree.map(lambda leaf: jnp.stack([leaf, 2.0 - leaf, leaf**2]), params)
    options = {"scaling": ChannelScaling.of(symmetry, several), "probes": probes(name, x)}
    writer, seer = metanet(name, params, **options), reader(name, params, **options)
    element = symmetry.random(jax.random.key(3))
    moved = symmetry.apply(params, element)
    assert distance(write(writer, moved), symmetry.apply(write(writer, params), element)) < ROUNDING
    assert distance(read(seer, moved), read(seer, params)) < ROUNDING
    plain = reader(name, params)
    assert distance(read(seer, params), read(plain, params)) > 1e-3


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["tanh", "relu"])
def test_symmetries_that_were_not_asked_for_are_not_there(name):
    params, _ = doubles(name)
    symmetry = symmetry_of(name)
    smaller = symmetry.without_signs().without_scaling()
    element = symmetry.random(jax.random.key(0))
    moved = symmetry.apply(params, element)
    seer = reader(name, params, symmetry=smaller)
    assert distance(read(seer, moved), read(seer, params)) > 1e-3
    permuted = smaller.apply(params, smaller.random(jax.random.key(0)))
    assert distance(read(seer, permuted), read(seer, params)) < ROUNDING


@pytest.mark.usefixtures("x64")
def test_inputs_are_told_apart():
    params, _ = doubles("tanh")
    seer = reader("tanh", params)
    weight = params["layer0"]["weight"]
    swapped = eqx.tree_at(lambda p: p["layer0"]["weight"], params, weight[jnp.asarray([1, 0, 2])])
    assert distance(read(seer, swapped), read(seer, params)) > 1e-3
