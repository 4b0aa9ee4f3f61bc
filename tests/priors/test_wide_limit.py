"""The wide limit: closed-form kernels against quadrature, and networks against the kernels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special

import weightscape as ws
from weightscape.core import InputError
from weightscape.priors import excess_kurtosis, wide_kernel
from weightscape.priors.wide_limit import arc_cosine, arcsine

SCALE, BIAS_SCALE = 1.6, 0.7
PRIOR = {"scale": SCALE, "bias_scale": BIAS_SCALE}
X = jnp.array([[0.3, -1.2], [1.5, 0.4], [-1.4, -0.5], [0.0, 0.0]])
PRODUCTS = {"relu": (arc_cosine, lambda u: np.maximum(u, 0)), "erf": (arcsine, special.erf)}
every_activation = pytest.mark.parametrize("activation", ["relu", "erf"])


def outputs(activation, hidden, num_draws, seed=0, num_outputs=1):
    """Outputs at X of networks drawn from the prior, as (draw, point, output)."""
    network = ws.networks.MLP(hidden, activation, outputs=num_outputs)
    model = ws.Model(network, ws.likelihoods.Gaussian(1.0), ws.priors.FanInNormal(**PRIOR))
    return np.asarray(model.sample_prior(jax.random.key(seed), X, num_draws).outputs, np.float64)


def covariance(values):
    """The second moments of outputs, whose mean is zero, and their Monte-Carlo errors."""
    products = np.einsum("dpo,dqo->dpq", values, values) / values.shape[2]
    return products.mean(axis=0), products.std(axis=0) / np.sqrt(len(values))


@every_activation
@pytest.mark.parametrize("correlation", [-0.95, -0.2, 0.0, 0.7])
def test_expected_products_are_integrals(activation, correlation, x64):
    product, phi = PRODUCTS[activation]
    left, right = 1.3, 0.6
    across = correlation * np.sqrt(left * right)
    inverse = np.linalg.inv([[left, across], [across, right]])
    normaliser = 2 * np.pi * np.sqrt(left * right - across**2)
    density = lambda u, v: np.exp(-0.5 * (inverse[0, 0] * u**2 + 2 * inverse[0, 1] * u * v + inverse[1, 1] * v**2))
    # ReLU is zero on three quadrants and smooth on the fourth.
    low = 0 if activation == "relu" else -9
    integrand = lambda u, v: phi(u) * phi(v) * density(u, v) / normaliser
    truth = integrate.dblquad(integrand, low, 9, low, 9, epsabs=1e-9)[0]
    ours = product(*(jnp.asarray(value) for value in (left, right, across)))
    np.testing.assert_allclose(ours, truth, atol=1e-8)


@every_activation
@pytest.mark.parametrize("width", [1, 4])
def test_one_hidden_layer_has_the_covariance_at_every_width(activation, width):
    kernel = wide_kernel(X, X, activation=activation, depth=1, **PRIOR)
    found, error = covariance(outputs(activation, (width,), 40_000))
    assert np.all(np.abs(found - kernel) < 5 * error)
    assert np.all(error < 0.05 * np.diag(kernel).max())


def test_excess_kurtosis_of_relu_in_closed_form(x64):
    # u ~ N(0, k): E φ² = k/2 and E φ⁴ = 3k²/2, so Var(φ²) = 5k²/4.
    k = BIAS_SCALE**2 + SCALE**2 * np.mean(np.asarray(X, float) ** 2, axis=1)
    expected = 3 / 7 * SCALE**4 * (5 / 4) * k**2 / (BIAS_SCALE**2 + SCALE**2 * k / 2) ** 2
    found = excess_kurtosis(jnp.asarray(X, float), width=7, activation="relu", **PRIOR)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@every_activation
def test_excess_kurtosis_falls_as_one_over_the_width(activation):
    kernel = np.diag(wide_kernel(X, X, activation=activation, depth=1, **PRIOR))
    for width in (1, 4, 16):
        # Mean and variance are known exactly, so E f⁴ / K² − 3 is an unbiased estimate with a plain error.
        powers = outputs(activation, (width,), 40_000, seed=width)[:, :, 0] ** 4 / kernel**2
        error = powers.std(axis=0) / np.sqrt(len(powers))
        expected = np.asarray(excess_kurtosis(X, width=width, activation=activation, **PRIOR))
        assert np.all(np.abs(powers.mean(axis=0) - 3 - expected) < 5 * error)
    narrow = np.asarray(excess_kurtosis(X, width=1, activation=activation, **PRIOR))
    np.testing.assert_allclose(expected, narrow / 16, rtol=1e-5)
    assert np.all(narrow > 0.1)


def test_two_hidden_layers_approach_the_covariance():
    """ReLU: the gap falls as 1/H with the width of the first hidden layer; variances have none at any width.

    The width of the last hidden layer does not matter for the covariance, nor do further outputs: both are there to
    make the errors small. E φ² = k/2 is linear in the variance k, whose mean is exact, so the diagonal has no gap.
    """
    kernel = np.asarray(wide_kernel(X, X, activation="relu", depth=2, **PRIOR))
    gap, error = {}, {}
    for width in (4, 16):
        values = outputs("relu", (width, 16), 10_000, seed=width, num_outputs=8)
        found, error[width] = covariance(values)
        gap[width] = kernel - found
    far = (1, 2)  # nearly opposite inputs
    assert gap[4][far] > 15 * error[4][far]
    assert abs(gap[16][far] - gap[4][far] / 4) < 5 * error[16][far] < gap[4][far] / 2
    for width in gap:
        assert np.all(np.abs(np.diag(gap[width])) < 5 * np.diag(error[width]))


@every_activation
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_kernels_are_symmetric_and_positive(activation, depth, x64):
    x = jnp.asarray(np.random.default_rng(0).standard_normal((30, 3)))
    kernel = np.asarray(wide_kernel(x, x, activation=activation, depth=depth, **PRIOR))
    np.testing.assert_allclose(kernel, kernel.T, rtol=1e-12)
    assert np.linalg.eigvalsh(kernel)[0] > -1e-12 * np.trace(kernel)
    part = wide_kernel(x[:4], x[10:], activation=activation, depth=depth, **PRIOR)
    np.testing.assert_allclose(part, kernel[:4, 10:], rtol=1e-12)


@every_activation
def test_kernels_can_be_differentiated_in_the_scales(activation, x64):
    x = jnp.asarray(X, float)
    total = lambda scale: jnp.sum(wide_kernel(x, x, activation=activation, depth=2, scale=scale, bias_scale=BIAS_SCALE))
    slope = (total(SCALE + 1e-5) - total(SCALE - 1e-5)) / 2e-5
    np.testing.assert_allclose(jax.grad(total)(SCALE), slope, rtol=1e-7)


def test_a_function_is_as_good_as_its_name_and_others_are_refused(unchecked):
    by_name = wide_kernel(X, X, activation="relu", depth=1, **PRIOR)
    np.testing.assert_array_equal(wide_kernel(X, X, activation=jax.nn.relu, depth=1, **PRIOR), by_name)
    with pytest.raises(InputError, match='closed form, got tanh. Use "relu" or "erf"'):
        wide_kernel(X, X, activation="tanh", depth=1, **PRIOR)
    with pytest.raises(InputError, match="must have 2 inputs"):
        wide_kernel(X, X[:, :1], activation="erf", depth=1, **PRIOR)
    with pytest.raises(InputError, match="`scale` of wide_kernel must be positive"):
        wide_kernel(X, X, activation="erf", depth=1, scale=-1.0, bias_scale=1.0)
