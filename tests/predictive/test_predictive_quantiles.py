"""Quantiles and cumulative probabilities of Gaussian mixtures, against scipy's root finder."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import weightscape as ws

HETEROSCEDASTIC = ws.likelihoods.HeteroscedasticGaussian()


def exact_quantile(q, means, stds, weights):
    low, high = (means - 40 * stds).min(), (means + 40 * stds).max()
    return brentq(lambda z: weights @ norm.cdf(z, means, stds) - q, low, high, xtol=1e-13)


@pytest.fixture
def mixture():
    """Five components at each of six points, from narrow to wide, with unequal weights."""
    rng = np.random.default_rng(0)
    means, stds = rng.normal(3, 2, size=(5, 6)), np.exp(rng.normal(-1, 1, size=(5, 6)))
    return means, stds, rng.dirichlet(np.ones(5))


@pytest.mark.parametrize("q", [1e-4, 0.05, 0.5, 0.9, 0.999])
def test_quantiles_equal_the_root(q, mixture, table_draws, points):
    means, stds, weights = mixture
    outputs = np.stack([means, np.log(stds)], axis=-1)
    predictive = ws.predict(table_draws(outputs, HETEROSCEDASTIC, log_weights=np.log(weights)), points(6))
    exact = [exact_quantile(q, means[:, n], stds[:, n], weights) for n in range(6)]
    # F is rounded to 6e-8, which moves the root by that over the density: more in the tails.
    tolerance = 3e-7 / min(q, 1 - q) * stds.max() + 2e-6
    np.testing.assert_allclose(predictive.quantile(q), exact, atol=tolerance)


@pytest.mark.usefixtures("x64")
def test_quantiles_in_double_precision(mixture, table_draws, points):
    means, stds, weights = mixture
    outputs = np.stack([means, np.log(stds)], axis=-1)
    predictive = ws.predict(table_draws(outputs, HETEROSCEDASTIC, log_weights=np.log(weights)), points(6))
    exact = [exact_quantile(0.01, means[:, n], stds[:, n], weights) for n in range(6)]
    np.testing.assert_allclose(predictive.quantile(0.01), exact, rtol=1e-11)


def test_narrow_components_far_apart(table_draws, points):
    outputs = np.array([[[0.0, np.log(1e-3)]], [[1.0, np.log(1e-3)]]])
    predictive = ws.predict(table_draws(outputs, HETEROSCEDASTIC, log_weights=np.log([0.3, 0.7])), points(1))
    np.testing.assert_allclose(predictive.quantile(0.15), [0.0], atol=1e-6)
    np.testing.assert_allclose(predictive.quantile(0.65), [1.0], atol=1e-6)


def test_a_far_draw_without_weight_changes_nothing(table_draws, points):
    outputs = np.array([[[0.0, 0.0]], [[1e8, 0.0]]])
    predictive = ws.predict(table_draws(outputs, HETEROSCEDASTIC, log_weights=[0.0, -np.inf]), points(1))
    np.testing.assert_allclose(predictive.quantile(0.975), [norm.ppf(0.975)], rtol=1e-6)


def test_intervals_and_cumulative_are_inverse(mixture, table_draws, points):
    means, stds, weights = mixture
    outputs = np.stack([means, np.log(stds)], axis=-1)
    scaling = ws.data.Scaling(0.0, 1.0, 100.0, 7.0)
    draws = table_draws(outputs, HETEROSCEDASTIC, log_weights=np.log(weights), scaling=scaling)
    predictive = ws.predict(draws, points(6))
    lower, upper = predictive.interval(0.8)
    np.testing.assert_allclose(predictive.cumulative(lower), np.full(6, 0.1), atol=1e-5)
    np.testing.assert_allclose(predictive.cumulative(upper), np.full(6, 0.9), atol=1e-5)
    exact = [exact_quantile(0.9, means[:, n], stds[:, n], weights) for n in range(6)]
    np.testing.assert_allclose(upper, 100 + 7 * np.array(exact), rtol=1e-6)


def test_vector_targets_have_quantiles_entry_by_entry(table_draws, points):
    outputs = np.random.default_rng(1).normal(size=(4, 3, 2))
    predictive = ws.predict(table_draws(outputs, ws.likelihoods.Gaussian(scale=0.5), y=[[0.0, 0.0]]), points(3))
    exact = [exact_quantile(0.3, outputs[:, 2, j], np.full(4, 0.5), np.full(4, 0.25)) for j in range(2)]
    assert predictive.quantile(0.3).shape == (3, 2)
    np.testing.assert_allclose(predictive.quantile(0.3)[2], exact, atol=2e-6)


@pytest.mark.parametrize("q", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_levels_outside_the_unit_interval_raise(q, table_draws, points):
    predictive = ws.predict(table_draws([[[0.0]]], ws.likelihoods.Gaussian(scale=0.5)), points(1))
    with pytest.raises(ValueError, match="`q` of quantile must lie strictly between 0 and 1"):
        predictive.quantile(q)
    with pytest.raises(ValueError, match="`level` of interval must lie strictly between 0 and 1"):
        predictive.interval(q)
