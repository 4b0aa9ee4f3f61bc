"""Symmetries of Flax networks, where Flax is installed."""

import jax
import jax.numpy as jnp
import pytest

from weightscape.networks import from_flax
from weightscape.symmetry import discover

linen = pytest.importorskip("flax.linen", reason="flax is not installed")


def build():
    """A convolution, a layer norm, a recurrent layer and attention, as Flax writes them."""

    class Network(linen.Module):
        @linen.compact
        def __call__(self, x):
            h = linen.relu(linen.Conv(6, (3,))(x))
            h = linen.RNN(linen.OptimizedLSTMCell(5))(h)
            h = linen.Dense(8)(linen.LayerNorm()(h))
            h = h + linen.MultiHeadDotProductAttention(num_heads=2)(h, h)
            return linen.Dense(2)(h.mean(1))

    return Network()


def test_flax_layers_are_understood():
    x = jax.random.normal(jax.random.key(0), (3, 7, 4))
    network = from_flax(build())
    params = network.init(jax.random.key(1), x)
    params = jax.tree.map(lambda leaf: leaf + 0.1 * jax.random.normal(jax.random.key(2), leaf.shape), params)
    symmetry = discover(network, params, x)
    assert sorted(group.size for group in symmetry.groups) == [2, 4, 4, 5, 6, 8], str(symmetry)
    moved = symmetry.apply(params, symmetry.random(jax.random.key(3), scale_spread=0.3))
    with jax.default_matmul_precision("highest"):
        assert jnp.allclose(network.apply(moved, x), network.apply(params, x), rtol=1e-4, atol=1e-5)
