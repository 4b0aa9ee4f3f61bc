"""The multilayer perceptron against its equation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import weightscape as ws
from weightscape.core import InputError

X = np.random.default_rng(0).normal(size=(5, 4))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("hidden", [(), (7,), (6, 3)])
def test_apply_is_the_equation(hidden, bias, x64):
    network = ws.networks.MLP(hidden=hidden, activation="relu", bias=bias, outputs=2)
    params = network.init(jax.random.key(0), jnp.asarray(X))
    params = jax.tree.map(lambda leaf: leaf + 0.1, params)  # so that the biases are not zero
    h = X
    for i in range(len(hidden) + 1):
        h = h @ np.asarray(params[f"layer{i}"]["weight"])
        h = h + (np.asarray(params[f"layer{i}"]["bias"]) if bias else 0.0)
        h = np.maximum(h, 0) if i < len(hidden) else h
    np.testing.assert_allclose(network.apply(params, jnp.asarray(X)), h, rtol=1e-12)
    assert ("bias" in params["layer0"]) == bias


def test_initial_weights_keep_the_scale_of_their_inputs():
    params = ws.networks.MLP(hidden=(2000,), outputs=1).init(jax.random.key(1), jnp.zeros((1, 50)))
    weight = params["layer0"]["weight"]
    assert abs(float(weight.var()) - 1 / 50) < 5 * (1 / 50) * np.sqrt(2 / weight.size)
    assert not np.any(params["layer0"]["bias"])


def test_activation_is_a_name_or_a_function():
    by_name, by_function = ws.networks.MLP(activation="tanh"), ws.networks.MLP(activation=jnp.tanh)
    assert by_name.activation is by_function.activation
    with pytest.raises(InputError, match="Did you mean 'tanh'"):
        ws.networks.MLP(activation="tahn")


def test_sizes_are_checked():
    with pytest.raises(InputError, match="must be known before `init`"):
        ws.networks.MLP().init(jax.random.key(0), jnp.zeros((1, 2)))
    with pytest.raises(InputError, match="must be at least 1, got 0"):
        ws.networks.MLP(hidden=(3, 0))
    assert ws.networks.MLP(hidden=8).hidden == (8,)
