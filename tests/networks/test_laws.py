"""Laws that every network obeys. The settings of the tests make rank promotion an error, here as everywhere."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.networks.table import IMPORTED, NETWORKS

from weightscape.core import InputError, decode, encode, tree
from weightscape.networks import parameter_count

NUM_OUTPUTS = 3
own_networks = pytest.mark.parametrize(("network", "shape"), NETWORKS.values(), ids=NETWORKS)
every_network = pytest.mark.parametrize(("network", "shape"), (NETWORKS | IMPORTED).values(), ids=NETWORKS | IMPORTED)


def inputs(shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


def start(network, x, seed=0):
    """The bound network, and parameters away from the special values at which they start."""
    bound = network.bind(NUM_OUTPUTS)
    params = bound.init(jax.random.key(seed), x)
    return bound, tree.add(params, tree.scale(0.1, tree.normal_like(jax.random.key(seed + 1), params)))


@every_network
def test_shapes_types_and_initial_scale(network, shape):
    assert jax.config.jax_numpy_rank_promotion == "raise"
    x = inputs((64, *shape[1:]))
    bound = network.bind(NUM_OUTPUTS)
    params = bound.init(jax.random.key(0), x)
    outputs = jax.jit(bound.apply)(params, x)
    assert outputs.shape == (64, NUM_OUTPUTS)
    assert {leaf.dtype for leaf in [outputs, *jax.tree.leaves(params)]} == {jnp.dtype("float32")}
    assert 0.05 < float(jnp.sqrt(jnp.mean(outputs**2))) < 20
    assert parameter_count(bound, x) == sum(leaf.size for leaf in jax.tree.leaves(params))


@every_network
def test_compiled_is_eager_and_parameters_may_carry_an_axis(network, shape, x64):
    x = inputs(shape)
    bound, first = start(network, x)
    second = start(network, x, seed=5)[1]
    both = jax.jit(jax.vmap(bound.apply, (0, None)))(tree.stack([first, second]), x)
    np.testing.assert_allclose(both[0], bound.apply(first, x), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(both[1], bound.apply(second, x), rtol=1e-10, atol=1e-12)
    assert np.abs(both[0] - both[1]).max() > 1e-3


@every_network
def test_every_leaf_matters_and_its_gradient_is_the_slope(network, shape, x64):
    x = inputs(shape)
    bound, params = start(network, x)
    direction = inputs((shape[0], NUM_OUTPUTS), seed=1)
    loss = jax.jit(lambda params: jnp.sum(direction * bound.apply(params, x)))
    gradient = jax.grad(loss)(params)
    leaves, structure = jax.tree.flatten(params)
    for i, (path, slopes) in enumerate(tree.named_leaves(gradient).items()):
        index = np.unravel_index(np.abs(slopes).argmax(), slopes.shape)
        assert abs(slopes[index]) > 1e-4, path
        # Central differences: error of order h² = 1e-10 and rounding 1e-16 / h = 1e-11, relative to values of order 1.
        moved = [[*leaves[:i], leaves[i].at[index].add(h), *leaves[i + 1 :]] for h in (1e-5, -1e-5)]
        up, down = (float(loss(jax.tree.unflatten(structure, new))) for new in moved)
        np.testing.assert_allclose((up - down) / 2e-5, slopes[index], rtol=1e-5, atol=1e-7, err_msg=path)


@every_network
def test_points_do_not_see_each_other(network, shape, x64):
    x = inputs(shape)
    bound, params = start(network, x)
    apply = jax.jit(bound.apply)
    before, after = apply(params, x), apply(params, x.at[2].set(3.0 * x[2] + 1.0))
    others = np.arange(shape[0]) != 2
    np.testing.assert_allclose(after[others], before[others], rtol=1e-12, atol=1e-14)
    assert np.abs(after[2] - before[2]).max() > 1e-3
    np.testing.assert_allclose(bound.apply(params, x[3:4]), before[3:4], rtol=1e-10, atol=1e-12)


@every_network
def test_wider_inputs_meet_narrower_parameters(network, shape, x64):
    x = inputs(shape)
    bound, params = start(network, x)
    narrow = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), params)
    outputs = jax.jit(bound.apply)(narrow, x)
    assert outputs.dtype == jnp.float64
    np.testing.assert_allclose(outputs, bound.apply(params, x), rtol=1e-3, atol=1e-4)  # weights rounded to 1e-7


@own_networks
def test_storage_gives_the_same_network(network, shape):
    x = inputs(shape)
    bound, params = start(network, x)
    stored = json.loads(json.dumps(encode(bound).tree))
    again = decode(stored)
    assert again == bound
    np.testing.assert_array_equal(jax.jit(again.apply)(params, x), jax.jit(bound.apply)(params, x))


@own_networks
def test_output_size_is_bound_once(network, shape):
    x = inputs(shape)
    with pytest.raises(InputError, match="must be known before `init`, got None"):
        network.init(jax.random.key(0), x)
    bound = network.bind(2)
    assert jax.eval_shape(bound.apply, jax.eval_shape(bound.init, jax.random.key(0), x), x).shape == (shape[0], 2)
    assert bound.bind(2) == bound
    with pytest.raises(InputError, match="must match the targets' 5, got 2"):
        bound.bind(5)


@own_networks
def test_leaves_have_readable_paths(network, shape):
    shapes = jax.eval_shape(network.bind(2).init, jax.random.key(0), inputs(shape))
    names = {name for path in tree.named_leaves(shapes) for name in path.split("/")[-1:]}
    assert names <= {"weight", "bias", "kernel", "scale", "shift", "threshold", "input_weight", "recurrent_weight"}


@own_networks
def test_inputs_of_the_wrong_rank_are_refused(network, shape, unchecked):
    if len(shape) > 2:
        with pytest.raises(InputError, match=r"must have axes \(point, .*got shape \(7, 3\)"):
            network.bind(2).init(jax.random.key(0), jnp.ones((7, 3)))
