"""The recurrent networks against a cell unrolled by hand."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import expit
from tests.networks.filled import filled

from weightscape import networks as nn

X = np.random.default_rng(0).normal(size=(3, 6, 2))


def read(params, series):
    """h_T of one series, gate by gate and unit by unit."""
    W, U, b = (np.asarray(params[name]) for name in ("input_weight", "recurrent_weight", "bias"))
    hidden = b.shape[1]
    h, c = np.zeros(hidden), np.zeros(hidden)
    for x in series:
        new_h, new_c = np.empty(hidden), np.empty(hidden)
        for unit in range(hidden):
            drive = {gate: x @ W[:, i, unit] + h @ U[:, i, unit] + b[i, unit] for i, gate in enumerate(nn.GATES)}
            kept = expit(drive["forget"]) * c[unit]
            new_c[unit] = kept + expit(drive["input"]) * np.tanh(drive["candidate"])
            new_h[unit] = expit(drive["output"]) * np.tanh(new_c[unit])
        h, c = new_h, new_c
    return h


def test_lstm_is_the_unrolled_cell(x64):
    network = nn.LSTM(hidden=5, outputs=2)
    params = filled(network, jnp.asarray(X))
    states = np.stack([read(params["lstm"], series) for series in X])
    expected = states @ np.asarray(params["output"]["weight"]) + np.asarray(params["output"]["bias"])
    np.testing.assert_allclose(network.apply(params, jnp.asarray(X)), expected, rtol=1e-11)


def test_cnn_lstm_is_its_parts(x64):
    network = nn.CNNLSTM(channels=(4, 3), kernel=3, pool=nn.MaxPool(2), hidden=5, padding="valid", outputs=2)
    x = np.random.default_rng(2).normal(size=(3, 15, 2))
    params = filled(network, jnp.asarray(x))
    h = x
    for i in range(2):
        kernel, bias = np.asarray(params[f"conv{i}"]["kernel"]), np.asarray(params[f"conv{i}"]["bias"])
        windows = [np.tensordot(h[:, t : t + 3], kernel, axes=2) + bias for t in range(h.shape[1] - 2)]
        h = np.maximum(np.stack(windows, axis=1), 0)
        h = np.stack([h[:, t : t + 2].max(axis=1) for t in range(0, h.shape[1] - 1, 2)], axis=1)
    states = np.stack([read(params["lstm"], series) for series in h])
    expected = states @ np.asarray(params["output"]["weight"]) + np.asarray(params["output"]["bias"])
    np.testing.assert_allclose(network.apply(params, jnp.asarray(x)), expected, rtol=1e-11)


def test_gates_are_an_axis_and_the_forget_gate_starts_open():
    params = nn.LSTM(hidden=300, outputs=1).init(jax.random.key(0), jnp.ones((1, 4, 50)))["lstm"]
    assert nn.GATES == ("input", "forget", "candidate", "output")
    assert params["input_weight"].shape == (50, 4, 300)
    assert params["recurrent_weight"].shape == (300, 4, 300)
    np.testing.assert_array_equal(params["bias"], np.outer([0, 1, 0, 0], np.ones(300)))
    for name, inputs in (("input_weight", 50), ("recurrent_weight", 300)):
        # The error of a variance of n normal draws is √(2/n).
        assert abs(float(params[name].var()) * inputs - 1) < 5 * np.sqrt(2 / params[name].size)
