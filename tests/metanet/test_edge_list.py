"""The peer of `benchmarks/metanet.py` is a sound equivariant network, so that the comparison is fair."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from benchmarks.metanet_peers.edge_list import EdgeList, Params
from jax.flatten_util import ravel_pytree

LAYER_SIZES = (3, 5, 4, 2)
TIME = 0.3


def network(key: jax.Array) -> Params:
    made = {}
    for i in range(len(LAYER_SIZES) - 1):
        key_weight, key_bias = jax.random.split(jax.random.fold_in(key, i))
        shape = LAYER_SIZES[i : i + 2]
        made[f"layer{i}"] = {
            "bias": jax.random.normal(key_bias, shape[1:]),
            "weight": jax.random.normal(key_weight, shape),
        }
    return made


def reorder(params: Params, orders: list[np.ndarray]) -> Params:
    """The network with the neurons of layer i, inputs and outputs among them, in the order `orders[i]`."""
    return {
        f"layer{i}": {
            "bias": params[f"layer{i}"]["bias"][orders[i + 1]],
            "weight": params[f"layer{i}"]["weight"][orders[i]][:, orders[i + 1]],
        }
        for i in range(len(params))
    }


@pytest.fixture
def peer(x64: None) -> tuple[EdgeList, Params]:
    params = network(jax.random.key(0))
    return EdgeList(jax.random.key(1), params, width=8, edge_width=4, num_blocks=3, hidden=16), params


def gap(field: EdgeList, params: Params, orders: list[np.ndarray]) -> float:
    """The largest difference between moving before and moving after, in units of the largest output."""
    velocity = eqx.filter_jit(field)
    moved, after = (
        velocity(jnp.array(TIME), reorder(params, orders)),
        reorder(velocity(jnp.array(TIME), params), orders),
    )
    gaps = jax.tree.map(lambda one, other: jnp.max(jnp.abs(one - other)), moved, after)
    largest = max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(after))
    return max(map(float, jax.tree.leaves(gaps))) / largest


def test_hidden_neurons_may_be_permuted(peer: tuple[EdgeList, Params]):
    generator = np.random.default_rng(0)
    hidden = [generator.permutation(size) for size in LAYER_SIZES[1:-1]]
    # Sums over at most 5 edges in another order, through 3 blocks: some hundred roundings of 2e-16.
    assert gap(*peer, [np.arange(3), *hidden, np.arange(2)]) < 1e-13


@pytest.mark.parametrize("place", [0, 3])
def test_inputs_and_outputs_are_told_apart(peer: tuple[EdgeList, Params], place: int):
    orders = [np.arange(size) for size in LAYER_SIZES]
    orders[place] = orders[place][::-1]
    assert gap(*peer, orders) > 1e-3


def test_every_output_hears_of_every_weight_and_of_time(peer: tuple[EdgeList, Params]):
    field, params = peer
    flat, unflatten = ravel_pytree(params)
    outputs = lambda time, flat: ravel_pytree(field(time, unflatten(flat)))[0]
    by_time, by_weight = jax.jit(jax.jacobian(outputs, argnums=(0, 1)))(jnp.array(TIME), flat)
    assert by_weight.shape == (flat.size, flat.size)
    assert jnp.all(by_weight != 0)
    assert jnp.all(by_time != 0)


def test_every_trainable_number_has_a_gradient(peer: tuple[EdgeList, Params]):
    field, params = peer
    squares = lambda field: sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(field(jnp.array(TIME), params)))
    for gradient in jax.tree.leaves(eqx.filter_jit(eqx.filter_grad(squares))(field)):
        assert jnp.all(gradient != 0)
