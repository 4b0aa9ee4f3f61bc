"""The residual network against a second implementation, layer by layer, forward and backward."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.networks import reference
from tests.networks.filled import filled

from weightscape import networks as nn
from weightscape.core import InputError, tree

X = np.random.default_rng(0).normal(size=(2, 16, 16, 3))
DIRECTION = np.random.default_rng(1).normal(size=(2, 10))


def reference_layers(params, x):
    """ResNet-20 once more, in numpy."""

    def layer(params, h, stride=1):
        kernel, bias = params["conv"]["kernel"], params["conv"]["bias"]
        return reference.filter_response(
            reference.convolve(h, kernel, bias, padding="same", stride=stride), params["norm"]
        )

    def swish(h):
        return h / (1 + np.exp(-h))

    h = swish(layer(params["stem"], x))
    made = {"stem": h}
    for name in [f"stack{s}_block{b}" for s in (0, 1, 2) for b in (0, 1, 2)]:
        halves = name in ("stack1_block0", "stack2_block0")
        inner = swish(layer(params[name]["first"], h, 2 if halves else 1))
        kept = layer(params[name]["shortcut"], h, 2) if halves else h
        h = swish(layer(params[name]["second"], inner) + kept)
        made[name] = h
    pooled = h.reshape(h.shape[0], 16, 64).sum(axis=1) / 16  # four by four places are left
    return made | {"output": pooled @ params["output"]["weight"] + params["output"]["bias"]}


@pytest.fixture(scope="module")
def params():
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, filled(nn.ResNet(outputs=10), jnp.asarray(X)))


def test_resnet_20_layer_sums(params, x64):
    made = jax.jit(nn.ResNet(outputs=10).layers)(params, jnp.asarray(X))
    expected = reference_layers(params, X)
    assert set(made) == set(expected)
    for name, activations in expected.items():
        np.testing.assert_allclose(made[name].sum(), activations.sum(), rtol=1e-9, err_msg=name)
        np.testing.assert_allclose(made[name], activations, rtol=1e-8, atol=1e-10, err_msg=name)


def test_resnet_20_gradient(params, x64):
    """The slope of the numpy network along a direction in each leaf: the gradient's own plus a random one."""
    apply = nn.ResNet(outputs=10).apply
    gradient = jax.jit(jax.grad(lambda params: jnp.sum(DIRECTION * apply(params, jnp.asarray(X)))))(params)
    leaves, structure = jax.tree.flatten(params)
    for i, (path, slopes) in enumerate(tree.named_leaves(gradient).items()):
        size = np.linalg.norm(slopes)
        assert size > 1e-4, path
        random = np.random.default_rng(i).normal(size=slopes.shape)
        direction = np.asarray(slopes) / size + random / np.linalg.norm(random)
        up, down = (
            np.sum(DIRECTION * reference_layers(jax.tree.unflatten(structure, moved), X)["output"])
            for moved in ([*leaves[:i], leaves[i] + h * direction, *leaves[i + 1 :]] for h in (1e-7, -1e-7))
        )
        # Rounding of 1e-15 / h = 1e-8, and an error of order h from each of 50,000 places where max(y, τ) has a kink.
        np.testing.assert_allclose(
            (up - down) / 2e-7, np.sum(slopes * direction), atol=1e-4 * size + 1e-8, err_msg=path
        )


def test_parameter_count_is_that_of_the_published_code():
    """google-research/bnn_hmc, `resnet20_frn_swish`, on CIFAR-10: its layers, added up.

    Kernels: the stem, six of 16 → 16; 16 → 32 and five of 32 → 32; 32 → 64 and five of 64 → 64; two projections.
    Each of 784 channels has a shift of the convolution, and γ, β and τ. The last layer has 64 · 10 + 10.
    """
    stacks = [6 * 16 * 16, 16 * 32 + 5 * 32 * 32, 32 * 64 + 5 * 64 * 64]
    kernels = 9 * (3 * 16 + sum(stacks)) + 16 * 32 + 32 * 64
    channels = 7 * 16 + 7 * 32 + 7 * 64
    count = nn.parameter_count(nn.ResNet(outputs=10), jnp.ones((1, 32, 32, 3)))
    assert count == kernels + 4 * channels + 650 == 274_042
    smooth = nn.ResNet(outputs=10, normalisation=nn.FilterResponseNorm(threshold=False))
    assert nn.parameter_count(smooth, jnp.ones((1, 32, 32, 3))) == 274_042 - channels


def test_filter_response_forgets_the_size_of_its_input(x64):
    norm = nn.FilterResponseNorm(epsilon=1e-12)
    params = norm.init(3, jnp.dtype("float64"))
    z = jnp.asarray(X)
    np.testing.assert_allclose(norm.apply(params, 50.0 * z), norm.apply(params, z), rtol=1e-9)
    power = jnp.mean(nn.FilterResponseNorm(threshold=False).apply(params, z) ** 2, axis=(1, 2))
    np.testing.assert_allclose(power, 1.0, rtol=1e-5)  # ε = 1e-6 beside powers near one


def test_choices_are_checked():
    assert nn.ResNet(activation="swish").activation is nn.ResNet().activation
    with pytest.raises(InputError, match="`width` of ResNet must be at least 1"):
        nn.ResNet(width=0)
    with pytest.raises(InputError, match="`epsilon` of FilterResponseNorm must be positive"):
        nn.FilterResponseNorm(epsilon=0.0)
