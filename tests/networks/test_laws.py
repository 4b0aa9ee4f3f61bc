"""Laws that every network obeys. The settings of the tests make rank promotion an error, here as everywhere."""

import json
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.networks.filled import filled
from tests.networks.table import IMPORTED, NETWORKS

from weightscape.core import InputError, decode, encode, tree
from weightscape.networks import parameter_count

NUM_OUTPUTS = 3
EVERY = NETWORKS | IMPORTED
own_networks = pytest.mark.parametrize(("network", "shape"), NETWORKS.values(), ids=NETWORKS)
every_network = pytest.mark.parametrize(("network", "shape"), EVERY.values(), ids=EVERY)


class Case(NamedTuple):
    """A bound network, inputs and parameters in double precision, and its outputs when compiled."""

    network: object
    params: object
    x: object
    outputs: object


@pytest.fixture(scope="module", params=EVERY.values(), ids=EVERY)
def case(request):
    network, shape = request.param
    with jax.enable_x64(True):
        bound, x = network.bind(NUM_OUTPUTS), normal(shape)
        params = filled(bound, x)
        return Case(bound, params, x, eqx.filter_jit(bound.apply)(params, x))


def normal(shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


def test_compiled_is_eager(case, x64):
    np.testing.assert_allclose(case.network.apply(case.params, case.x), case.outputs, rtol=1e-10, atol=1e-12)


def test_parameters_may_carry_an_axis(case, x64):
    other = filled(case.network, case.x, seed=5)
    both = jax.jit(jax.vmap(lambda params: case.network.apply(params, case.x)))(tree.stack([case.params, other]))
    np.testing.assert_allclose(both[0], case.outputs, rtol=1e-10, atol=1e-12)
    assert np.abs(both[1] - both[0]).max() > 1e-3


def test_every_leaf_matters_and_its_gradient_is_the_slope(case, x64):
    direction = normal(case.outputs.shape, seed=1)
    loss = jax.jit(jax.value_and_grad(lambda params: jnp.sum(direction * case.network.apply(params, case.x))))
    _, gradient = loss(case.params)
    leaves, structure = jax.tree.flatten(jax.tree.map(np.asarray, case.params))
    for i, (path, slopes) in enumerate(tree.named_leaves(gradient).items()):
        assert np.all(np.isfinite(slopes)), path
        index = np.unravel_index(np.abs(slopes).argmax(), slopes.shape)
        assert abs(slopes[index]) > 1e-4, path
        # Central differences: an error of order h² = 1e-10 and rounding 1e-16 / h = 1e-11, beside values of order 1.
        up, down = (float(loss(jax.tree.unflatten(structure, moved(leaves, i, index, h)))[0]) for h in (1e-5, -1e-5))
        np.testing.assert_allclose((up - down) / 2e-5, slopes[index], rtol=1e-5, atol=1e-7, err_msg=path)


def moved(leaves, i, index, step):
    leaf = leaves[i].copy()
    leaf[index] += step
    return [*leaves[:i], leaf, *leaves[i + 1 :]]


def test_points_do_not_see_each_other(case, x64):
    x = case.x.at[2].set(3.0 * case.x[2] + 1.0)
    after = eqx.filter_jit(case.network.apply)(case.params, x)
    others = np.arange(len(x)) != 2
    np.testing.assert_allclose(after[others], case.outputs[others], rtol=1e-12, atol=1e-14)
    assert np.abs(after[2] - case.outputs[2]).max() > 1e-3


def test_wider_inputs_meet_narrower_parameters_and_the_other_way(case, x64):
    narrow = lambda tree: jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, jnp.float32), tree)
    for params, x in ((narrow(case.params), case.x), (case.params, narrow(case.x))):
        assert jax.eval_shape(case.network.apply, params, x).dtype == jnp.float64


@every_network
def test_shapes_types_and_initial_scale(network, shape):
    assert jax.config.jax_numpy_rank_promotion == "raise"
    bound, x = network.bind(NUM_OUTPUTS), normal((20, *shape[1:]))

    @jax.jit
    @jax.vmap
    def start(key):
        params = bound.init(key, x)
        return params, bound.apply(params, x)

    params, outputs = start(jax.random.split(jax.random.key(0, impl="rbg"), 5))  # this kind compiles fast
    assert outputs.shape == (5, 20, NUM_OUTPUTS)
    assert {leaf.dtype for leaf in [outputs, *jax.tree.leaves(params)]} == {jnp.dtype("float32")}
    assert 0.05 < float(jnp.sqrt(jnp.mean(outputs**2))) < 20
    assert parameter_count(bound, x) * 5 == sum(leaf.size for leaf in jax.tree.leaves(params))


@own_networks
def test_storage_gives_the_same_network(network, shape):
    bound, x = network.bind(NUM_OUTPUTS), normal(shape)
    params = filled(bound, x)
    again = decode(json.loads(json.dumps(encode(bound).tree)))
    assert again == bound
    np.testing.assert_array_equal(jax.jit(again.apply)(params, x), jax.jit(bound.apply)(params, x))


@own_networks
def test_output_size_is_bound_once(network, shape):
    x = normal(shape)
    with pytest.raises(InputError, match="must be known before `init`, got None"):
        network.init(jax.random.key(0), x)
    bound = network.bind(2)
    assert jax.eval_shape(bound.apply, jax.eval_shape(bound.init, jax.random.key(0), x), x).shape == (shape[0], 2)
    assert bound.bind(2) == bound
    with pytest.raises(InputError, match="must match the targets' 5, got 2"):
        bound.bind(5)
    with pytest.raises(InputError, match="`outputs` of .* must be at least 1, got 0"):
        network.bind(0)


@own_networks
def test_leaves_have_readable_paths(network, shape):
    shapes = jax.eval_shape(network.bind(2).init, jax.random.key(0), normal(shape))
    names = {path.split("/")[-1] for path in tree.named_leaves(shapes)}
    assert names <= {"weight", "bias", "kernel", "scale", "shift", "threshold", "input_weight", "recurrent_weight"}


@pytest.mark.parametrize("name", ["convnet", "resnet", "lstm", "cnn_lstm", "p4"])
def test_inputs_of_the_wrong_rank_are_refused(name, unchecked):
    with pytest.raises(InputError, match=r"must have axes \(point, .*got shape \(7, 3\)"):
        NETWORKS[name][0].bind(2).init(jax.random.key(0), jnp.ones((7, 3)))
