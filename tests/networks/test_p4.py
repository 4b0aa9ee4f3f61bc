"""Equivariance under rotations by 90° is a law, to rounding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import correlate
from tests.networks.filled import filled

from weightscape import networks as nn
from weightscape.core import InputError
from weightscape.networks.p4 import rotate_maps

CHOICES = {
    "plain": (nn.P4ConvNet(channels=(3, 4, 2), outputs=3), (2, 7, 7, 2)),
    "wide_kernel": (nn.P4ConvNet(channels=(3, 4), kernel=5, padding="valid", outputs=3), (2, 10, 10, 1)),
    "oblong": (nn.P4ConvNet(channels=(3, 4), activation="tanh", outputs=3), (2, 5, 8, 2)),
    "average_pool": (nn.P4ConvNet(channels=(3, 4), pool=nn.AveragePool(2), outputs=3), (2, 8, 6, 1)),
    "max_pool": (nn.P4ConvNet(channels=(3, 4), pool=nn.MaxPool(3), outputs=3), (2, 9, 6, 1)),
}
every_choice = pytest.mark.parametrize(("network", "shape"), CHOICES.values(), ids=CHOICES)


def start(network, shape):
    x = jnp.asarray(np.random.default_rng(0).normal(size=shape))
    return filled(network, x), x


@every_choice
def test_turned_images_give_turned_maps_and_the_same_outputs(network, shape, x64):
    params, x = start(network, shape)
    turned = jnp.rot90(x, axes=(1, 2))
    maps = network.maps(params, x)
    np.testing.assert_allclose(network.maps(params, turned), rotate_maps(maps), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(network.apply(params, turned), network.apply(params, x), rtol=1e-11, atol=1e-13)
    # The law says something: the maps do depend on how the image lies, and a mirrored image is another one.
    plain = jnp.rot90(maps, axes=(1, 2))
    assert np.abs(network.maps(params, turned) - plain).max() > 1e-2
    assert np.abs(network.apply(params, x[:, ::-1]) - network.apply(params, x)).max() > 1e-4


def test_maps_are_correlations_with_turned_kernels(x64):
    """Written out for one point and one channel, where "turn" is an index (i, j) → (j, size − 1 − i) in a loop."""
    network = nn.P4ConvNet(channels=(1, 1), padding="valid", activation="tanh", outputs=1)
    params, x = start(network, (1, 7, 7, 1))

    def turn(kernel, times):
        for _ in range(times):
            size = len(kernel)
            kernel = np.array([[kernel[j, size - 1 - i] for j in range(size)] for i in range(size)])
        return kernel

    first, second = (np.asarray(params[name]["kernel"]) for name in ("conv0", "conv1"))
    b0, b1 = (float(params[name]["bias"][0]) for name in ("conv0", "conv1"))
    image = np.asarray(x[0, :, :, 0])
    lifted = [np.tanh(correlate(image, turn(first[:, :, 0, 0], r), "valid") + b0) for r in range(4)]
    for r in range(4):
        parts = [correlate(lifted[s], turn(second[:, :, (s - r) % 4, 0, 0], r), "valid") for s in range(4)]
        np.testing.assert_allclose(network.maps(params, x)[0, :, :, r, 0], np.tanh(sum(parts) + b1), rtol=1e-11)


def test_what_would_break_the_law_is_refused():
    with pytest.raises(InputError, match="`kernel` of P4ConvNet must be odd, got 4"):
        nn.P4ConvNet(kernel=4)
    network = nn.P4ConvNet(channels=(2, 2), pool=nn.MaxPool(2), outputs=1)
    x = jnp.ones((1, 7, 8, 1))
    with pytest.raises(InputError, match=r"must be multiples of the window 2, got \(7, 8\)"):
        network.apply(network.init(jax.random.key(0), x), x)
