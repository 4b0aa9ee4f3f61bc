"""Laws that every likelihood obeys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.laws import CLASSIFICATION_LIKELIHOODS, REGRESSION_LIKELIHOODS

import weightscape as ws
from weightscape.core import InputError

every_regression = pytest.mark.parametrize(
    ("likelihood", "outputs", "own"), REGRESSION_LIKELIHOODS.values(), ids=REGRESSION_LIKELIHOODS
)
every_classification = pytest.mark.parametrize(
    ("likelihood", "outputs"), CLASSIFICATION_LIKELIHOODS.values(), ids=CLASSIFICATION_LIKELIHOODS
)

GRID = np.linspace(-15, 15, 30_001)


def densities(likelihood, outputs, own):
    at = lambda y: likelihood.log_density(outputs, jnp.full((len(outputs),), y), own)
    return np.exp(np.asarray(jax.vmap(at)(jnp.asarray(GRID))))


@pytest.fixture(autouse=True)
def _double(x64):
    """All of these laws are checked in double precision."""


def prepared(outputs, own):
    return jnp.asarray(outputs), {name: jnp.asarray(value) for name, value in own.items()}


@every_regression
def test_density_integrates_to_one_with_its_mean_and_variance(likelihood, outputs, own):
    outputs, own = prepared(outputs, own)
    density = densities(likelihood, outputs, own)
    total = np.trapezoid(density, GRID, axis=0)
    mean = np.trapezoid(density * GRID[:, None], GRID, axis=0)
    variance = np.trapezoid(density * (GRID[:, None] - mean) ** 2, GRID, axis=0)
    np.testing.assert_allclose(total, 1, atol=1e-9)
    np.testing.assert_allclose(likelihood.mean(outputs, own)[:, 0], mean, atol=1e-9)
    np.testing.assert_allclose(likelihood.variance(outputs, own)[:, 0], variance, rtol=1e-8)


@every_regression
def test_cumulative_is_the_integral_of_the_density(likelihood, outputs, own):
    outputs, own = prepared(outputs, own)
    density = densities(likelihood, outputs, own)
    below = GRID <= 0.25
    integral = np.trapezoid(density[below], GRID[below], axis=0)
    cumulative = likelihood.cumulative(outputs, jnp.full((len(outputs), 1), GRID[below][-1]), own)[:, 0]
    np.testing.assert_allclose(cumulative, integral, atol=1e-9)


@every_regression
def test_samples_follow_the_cumulative(likelihood, outputs, own):
    outputs, own = prepared(outputs, own)
    keys = jax.random.split(jax.random.key(3), 5000)
    samples = jax.vmap(lambda key: likelihood.sample(key, outputs, own))(keys)
    uniform = np.asarray(jax.vmap(lambda y: likelihood.cumulative(outputs, y, own))(samples))
    for point in range(len(outputs)):
        assert stats.kstest(uniform[:, point, 0], "uniform").pvalue > 1e-4
    assert abs(np.corrcoef(uniform[:, 0, 0], uniform[:, 1, 0])[0, 1]) < 6 / np.sqrt(5000)


@every_regression
def test_vector_targets_add_up(likelihood, outputs, own):
    outputs, own = prepared(outputs, own)
    halves = jnp.split(outputs, likelihood.num_outputs(jnp.zeros((2,))), axis=1)
    both = jnp.concatenate([jnp.concatenate([half, half + 0.1], axis=1) for half in halves], axis=1)
    y = jnp.asarray([[0.2, -0.4], [0.1, 0.9]])
    shifted = jnp.concatenate([half + 0.1 for half in halves], axis=1)
    expected = likelihood.log_density(outputs, y[:, 0], own) + likelihood.log_density(shifted, y[:, 1], own)
    np.testing.assert_allclose(likelihood.log_density(both, y, own), expected, rtol=1e-12)
    assert likelihood.num_outputs(y) == both.shape[1]


@every_classification
def test_probabilities_sum_to_one_and_are_the_density(likelihood, outputs):
    outputs = jnp.asarray(outputs)
    probabilities = np.asarray(likelihood.probabilities(outputs))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    for label in range(likelihood.num_classes):
        density = likelihood.log_density(outputs, jnp.full((len(outputs),), label))
        np.testing.assert_allclose(np.exp(density), probabilities[:, label], rtol=1e-12)


@every_classification
def test_class_samples_have_their_probabilities(likelihood, outputs):
    outputs, num = jnp.asarray(outputs), 20_000
    labels = np.asarray(jax.vmap(lambda key: likelihood.sample(key, outputs))(jax.random.split(jax.random.key(0), num)))
    expected = np.asarray(likelihood.probabilities(outputs))
    for label in range(likelihood.num_classes):
        frequency = (labels == label).mean(axis=0)
        error = np.sqrt(expected[:, label] * (1 - expected[:, label]) / num)
        assert np.all(np.abs(frequency - expected[:, label]) < 5 * error)


def test_against_scipy():
    outputs, y = jnp.asarray([[0.5], [-1.0]]), jnp.asarray([0.1, 0.2])
    np.testing.assert_allclose(
        ws.likelihoods.Gaussian(0.7).log_density(outputs, y), stats.norm.logpdf([0.1, 0.2], [0.5, -1.0], 0.7)
    )
    two = jnp.asarray([[0.5, -2.0], [-1.0, 1.5]])
    np.testing.assert_allclose(
        ws.likelihoods.HeteroscedasticGaussian().log_density(two, y),
        stats.norm.logpdf([0.1, 0.2], [0.5, -1.0], np.exp([-2.0, 1.5])),
    )
    np.testing.assert_allclose(
        ws.likelihoods.Bernoulli().log_density(outputs, jnp.asarray([1, 0])),
        np.log([1 / (1 + np.exp(-0.5)), 1 - 1 / (1 + np.exp(1.0))]),
    )


@pytest.mark.parametrize(
    ("likelihood", "y", "message"),
    [
        (ws.likelihoods.Categorical(3), jnp.asarray([0, 3]), r"Classes must lie in 0..2, got 0..3"),
        (ws.likelihoods.Categorical(3), jnp.asarray([0.0, 1.0]), "one integer for each point"),
        (ws.likelihoods.Bernoulli(), jnp.asarray([0, 1, 2]), r"Classes must lie in 0..1"),
        (ws.likelihoods.Gaussian(), jnp.zeros((2, 2, 2)), r"shape \(point,\) or \(point, target\)"),
    ],
)
def test_targets_that_cannot_be_are_refused(likelihood, y, message):
    with pytest.raises(InputError, match=message):
        likelihood.check_targets(y)
    with pytest.raises(InputError, match="`scale` of Gaussian must be positive"):
        ws.likelihoods.Gaussian(0.0)
