"""Convolution, pooling and the convolution network against loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import correlate as scipy_correlate
from tests.networks import reference
from tests.networks.filled import filled

from weightscape import networks as nn
from weightscape.core import InputError
from weightscape.networks.convolution import apply_convolution

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("kernel", [(3, 3), (2, 5)])
def test_convolution_is_scipys_correlation(kernel, padding, x64):
    x, weights, bias = RANDOM.normal(size=(2, 6, 7, 3)), RANDOM.normal(size=(*kernel, 3, 4)), RANDOM.normal(size=4)
    made = apply_convolution(
        {"kernel": jnp.asarray(weights), "bias": jnp.asarray(bias)}, jnp.asarray(x), padding=padding
    )
    before = [(size - 1) // 2 for size in kernel]  # the odd zero comes last
    sides = [(0, 0)] * 2 if padding == "valid" else [(b, k - 1 - b) for b, k in zip(before, kernel, strict=True)]
    padded = np.pad(x, [(0, 0), *sides, (0, 0)])
    for p in range(2):
        for o in range(4):
            expected = scipy_correlate(padded[p], weights[..., o], mode="valid")[..., 0] + bias[o]
            np.testing.assert_allclose(made[p, ..., o], expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("size", [7, 8])
def test_stride_takes_every_other_place(size, x64):
    x, weights, bias = RANDOM.normal(size=(2, size, 6, 3)), RANDOM.normal(size=(3, 3, 3, 4)), RANDOM.normal(size=4)
    params = {"kernel": jnp.asarray(weights), "bias": jnp.asarray(bias)}
    made = apply_convolution(params, jnp.asarray(x), padding="same", stride=2)
    expected = reference.convolve(x, weights, bias, padding="same", stride=2)
    assert made.shape == (2, 4, 3, 4)
    np.testing.assert_allclose(made, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("pool", "summary"), [(nn.AveragePool, np.mean), (nn.MaxPool, np.max)])
@pytest.mark.parametrize("window", [2, 3])
def test_pooling_is_the_summary_of_each_window(pool, summary, window, x64):
    x = RANDOM.normal(size=(2, 7, 6, 3))
    np.testing.assert_allclose(pool(window).apply(jnp.asarray(x)), reference.pool(x, window, summary), rtol=1e-12)


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_network_is_its_layers(padding, x64):
    network = nn.ConvNet(channels=(3, 4), kernel=3, hidden=(5,), padding=padding, outputs=2)
    x = RANDOM.normal(size=(2, 11, 12, 2))
    params = filled(network, jnp.asarray(x))
    h = x
    for i in range(2):
        layer = jax.tree.map(np.asarray, params[f"conv{i}"])
        h = reference.convolve(h, layer["kernel"], layer["bias"], padding=padding)
        h = reference.pool(np.maximum(h, 0), 2, np.mean)
    h = np.stack([np.concatenate([pixel for row in image for pixel in row]) for image in h])
    h = np.maximum(h @ np.asarray(params["dense0"]["weight"]) + np.asarray(params["dense0"]["bias"]), 0)
    h = h @ np.asarray(params["output"]["weight"]) + np.asarray(params["output"]["bias"])
    np.testing.assert_allclose(network.apply(params, jnp.asarray(x)), h, rtol=1e-10)


def test_defaults_are_lenet_5():
    """61,706 = (25·1·6 + 6) + (25·6·16 + 16) + (400·120 + 120) + (120·84 + 84) + (84·10 + 10)."""
    assert nn.parameter_count(nn.ConvNet(padding="valid", outputs=10), jnp.ones((1, 32, 32, 1))) == 61_706


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.ConvNet(channels=()), "must have at least 1 entries"),
        (lambda: nn.ConvNet(kernel=0), "must be at least 1, got 0"),
        (lambda: nn.ConvNet(padding="full"), "Known: same, valid"),
        (lambda: nn.MaxPool(0), "must be at least 1, got 0"),
        (lambda: _init(nn.ConvNet(padding="valid", outputs=1), (1, 4, 9, 1)), "A kernel must fit into its input"),
        (lambda: _init(nn.ConvNet(channels=(1, 1, 1), outputs=1), (1, 4, 9, 1)), "Pooling needs at least 2 places"),
    ],
)
def test_impossible_sizes_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def _init(network, shape):
    return network.init(jax.random.key(0), jnp.ones(shape))
