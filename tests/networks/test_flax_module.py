"""Flax modules as networks: the policy with a stand-in that has the same methods, and linen itself where installed."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from weightscape.core import InputError, InputTypeError
from weightscape.networks import from_flax

X = jnp.asarray(np.random.default_rng(0).normal(size=(5, 4)), jnp.float32)


class InvalidRngError(Exception):
    """Named as flax's own."""


class Stand:
    """A dense layer with the two methods of a linen module, and without a hash, as some linen modules are."""

    __hash__ = None

    def __init__(self, extra=(), needs_noise=False):
        self.extra, self.needs_noise = extra, needs_noise

    def init(self, key, x, train=False):
        kernel = jax.random.normal(key, (x.shape[-1], 3))
        return {"params": {"Dense_0": {"kernel": kernel}}, **{name: {} for name in self.extra}}

    def apply(self, variables, x, train=False):
        if self.needs_noise or train:
            raise InvalidRngError("no dropout key")
        return x @ variables["params"]["Dense_0"]["kernel"]


def test_params_are_the_collection_of_that_name():
    network = from_flax(Stand())
    params = network.init(jax.random.key(0), X)
    np.testing.assert_allclose(eqx.filter_jit(network.apply)(params, X), X @ params["Dense_0"]["kernel"], rtol=1e-5)


def test_state_and_noise_are_refused():
    with pytest.raises(InputError, match="function of the weights alone, got also batch_stats. In place of batch"):
        from_flax(Stand(extra=("batch_stats",))).init(jax.random.key(0), X)
    for network in (from_flax(Stand(needs_noise=True)), from_flax(Stand(), arguments={"train": True})):
        with pytest.raises(InputError, match="got one that asks for random numbers .dropout that is on."):
            network.init(jax.random.key(0), X)
    with pytest.raises(InputTypeError, match="takes a module with `init` and `apply`, got dict"):
        from_flax({})


def test_linen_modules():
    linen = pytest.importorskip("flax.linen", reason="flax is an optional extra")
    dense = linen.Sequential([linen.Dense(6), linen.tanh, linen.LayerNorm(), linen.Dense(3)])
    network = from_flax(dense)
    params = network.init(jax.random.key(0), X)
    assert params["layers_0"]["kernel"].shape == (4, 6)
    np.testing.assert_allclose(eqx.filter_jit(network.apply)(params, X), dense.apply({"params": params}, X), rtol=1e-6)
    quiet = from_flax(linen.Sequential([linen.Dense(6), linen.Dropout(0.5, deterministic=True), linen.Dense(3)]))
    assert quiet.apply(quiet.init(jax.random.key(0), X), X).shape == (5, 3)


def test_linen_layers_with_state_or_noise():
    linen = pytest.importorskip("flax.linen", reason="flax is an optional extra")
    noisy = linen.Sequential([linen.Dense(6), linen.Dropout(0.5, deterministic=False), linen.Dense(3)])
    with pytest.raises(InputError, match="asks for random numbers"):
        from_flax(noisy).init(jax.random.key(0), X)
    batch = linen.Sequential([linen.Dense(6), linen.BatchNorm(use_running_average=True), linen.Dense(3)])
    with pytest.raises(InputError, match="got also batch_stats"):
        from_flax(batch).init(jax.random.key(0), X)
