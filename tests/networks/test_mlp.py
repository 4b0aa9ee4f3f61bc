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


def test_default_network_is_the_one_it_always_was():
    """The layers' keys, their order and their scale, written out."""
    params = ws.networks.MLP(hidden=(6, 3), outputs=2).init(jax.random.key(4), jnp.asarray(X))
    keys = jax.random.split(jax.random.key(4), 3)
    assert list(params) == ["layer0", "layer1", "layer2"]
    for i, (inputs, units) in enumerate([(4, 6), (6, 3), (3, 2)]):
        expected = jax.random.normal(keys[i], (inputs, units)) / np.float32(np.sqrt(inputs))
        np.testing.assert_array_equal(params[f"layer{i}"]["weight"], expected)


def layer_norm(z, params):
    rows = [(row - row.mean()) / np.sqrt(row.var() + 1e-6) for row in z]
    return np.asarray(params["scale"]) * np.stack(rows) + np.asarray(params["shift"])


def rms_norm(z, params):
    return np.asarray(params["scale"]) * np.stack([row / np.sqrt((row @ row) / len(row) + 1e-6) for row in z])


@pytest.mark.parametrize(
    ("normalisation", "reference"),
    [(None, None), (ws.networks.LayerNorm(), layer_norm), (ws.networks.RMSNorm(), rms_norm)],
)
@pytest.mark.parametrize("skip", [True, False])
def test_skip_and_normalisation_are_their_equations(normalisation, reference, skip, x64):
    hidden = (4, 6, 6, 4, 4)  # the first is as wide as the inputs and as the last, and yet has no skip connection
    network = ws.networks.MLP(hidden=hidden, outputs=2, skip=skip, normalisation=normalisation)
    params = network.init(jax.random.key(0), jnp.asarray(X))
    params = jax.tree.map(lambda leaf: leaf + 0.1 * jnp.cos(jnp.arange(leaf.size)).reshape(leaf.shape), params)
    h = X
    for i in range(len(hidden)):
        z = h @ np.asarray(params[f"layer{i}"]["weight"]) + np.asarray(params[f"layer{i}"]["bias"])
        z = z if reference is None else reference(z, params[f"norm{i}"])
        h = h + np.tanh(z) if skip and i in (2, 4) else np.tanh(z)
    outputs = h @ np.asarray(params["layer5"]["weight"]) + np.asarray(params["layer5"]["bias"])
    np.testing.assert_allclose(network.apply(params, jnp.asarray(X)), outputs, rtol=1e-10)


def test_skip_without_equal_widths_is_refused():
    with pytest.raises(InputError, match=r"must have neighbouring layers of equal width, got \(8, 4\)"):
        ws.networks.MLP(hidden=(8, 4), skip=True)


def test_filter_response_needs_space():
    network = ws.networks.MLP(outputs=1, normalisation=ws.networks.FilterResponseNorm())
    x = jnp.asarray(X)
    with pytest.raises(InputError, match="needs spatial axes, got shape"):
        network.apply(network.init(jax.random.key(0), x), x)


def test_an_activation_that_mixes_units_mixes_no_points(x64):
    """Points lie along another axis for activations that are known to act on each unit alone, and only then."""
    network = ws.networks.MLP(hidden=(6,), activation=jax.nn.softmax, outputs=2)
    params = network.init(jax.random.key(0), jnp.asarray(X))
    hidden = np.exp(X @ np.asarray(params["layer0"]["weight"]))
    expected = hidden / hidden.sum(1, keepdims=True) @ np.asarray(params["layer1"]["weight"])
    np.testing.assert_allclose(network.apply(params, jnp.asarray(X)), expected, rtol=1e-12)
