"""RMSE, NLL, coverage, interval width and PIT values of regressions."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import kstest, norm

import weightscape as ws
from weightscape.evaluate import coverage, interval_width, nll, pit, rmse

GAUSSIAN = ws.likelihoods.Gaussian(scale=0.5)


def test_rmse_of_the_mean(predictive_of):
    outputs, y = np.random.default_rng(0).normal(size=(3, 9, 2)), np.random.default_rng(1).normal(size=(9, 2))
    predictive = predictive_of(outputs, GAUSSIAN, y=[[0.0, 0.0]])
    assert rmse(predictive, y) == pytest.approx(np.sqrt(np.mean((outputs.mean(0) - y) ** 2)), rel=1e-5)


def test_nll_averages_inside_the_logarithm(predictive_of):
    outputs, y = np.random.default_rng(2).normal(size=(4, 9, 1)), np.random.default_rng(3).normal(30, 8, size=9)
    scaling = ws.data.Scaling(0.0, 1.0, 30.0, 10.0)
    each = norm.logpdf(y, outputs[..., 0] * 10 + 30, 5.0)
    exact = -np.mean(logsumexp(each, axis=0) - np.log(4))
    assert nll(predictive_of(outputs, GAUSSIAN, scaling=scaling), y) == pytest.approx(exact, rel=1e-5)


def test_one_gaussian_has_the_textbook_interval(predictive_of):
    scaling = ws.data.Scaling(0.0, 1.0, 7.0, 3.0)
    predictive = predictive_of(np.zeros((1, 4, 1)), GAUSSIAN, scaling=scaling)
    assert interval_width(predictive, 0.8) == pytest.approx(2 * 1.5 * norm.ppf(0.9), rel=1e-5)
    inside, outside = 7 + 1.5 * norm.ppf(0.9) * np.array([0.99, 1.01])
    assert coverage(predictive, [inside, outside, 14 - inside, 14 - outside], 0.8) == 0.5


def test_targets_from_the_predictive_are_covered(predictive_of):
    rng, num_points = np.random.default_rng(4), 3000
    outputs = rng.normal(size=(5, num_points, 1))
    y = outputs[rng.integers(0, 5, num_points), np.arange(num_points), 0] + 0.5 * rng.normal(size=num_points)
    predictive = predictive_of(outputs, GAUSSIAN)
    for level in (0.5, 0.9):
        error = np.sqrt(level * (1 - level) / num_points)
        assert abs(coverage(predictive, y, level) - level) < 5 * error
    values = np.asarray(pit(predictive, y))
    assert kstest(values, "uniform").pvalue > 1e-3
    np.testing.assert_allclose(values[:5], norm.cdf(y[:5], outputs[:, :5, 0], 0.5).mean(0), rtol=1e-4)
    assert kstest(np.asarray(pit(predictive, 2 * y)), "uniform").pvalue < 1e-6


@pytest.mark.parametrize("score", [rmse, coverage, pit])
def test_classes_raise(score, class_predictive, labels):
    with pytest.raises(ValueError, match=f"`{score.__name__}` must be asked of a regression, got a classification"):
        score(class_predictive, labels)


@pytest.mark.parametrize("score", [rmse, nll, coverage, pit])
@pytest.mark.parametrize("y", [[0.0], [0.0, np.nan], [[0.0], [1.0]]])
def test_targets_that_do_not_fit(score, y, predictive_of):
    predictive = predictive_of(np.zeros((1, 2, 1)), GAUSSIAN)
    with pytest.raises(ValueError, match="`y` must"):
        score(predictive, y)
