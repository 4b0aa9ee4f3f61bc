"""Predictions of other programs as a Predictive: against the numbers that were given, and scipy."""

import numpy as np
import pytest
from scipy import stats

import weightscape as ws
from weightscape.data import Scaling
from weightscape.evaluate import crps
from weightscape.predictive import given_classes, given_normals

TABLE = np.array([[0.2, 0.5, 0.3], [0.0, 0.0, 1.0]])


def test_probabilities_come_back_and_the_impossible_stays_so(x64):
    predictive = given_classes(TABLE)
    np.testing.assert_allclose(predictive.probabilities, TABLE, rtol=1e-12)
    np.testing.assert_allclose(predictive.log_density([1, 2]), [np.log(0.5), 0.0], rtol=1e-12)
    np.testing.assert_allclose(predictive.entropy, stats.entropy(TABLE, axis=1), rtol=1e-12)
    assert predictive.log_density([0, 0])[1] == -np.inf
    with pytest.raises(ValueError, match="`mutual_information` must be asked of draws"):
        _ = predictive.mutual_information


def test_normals_come_back_in_original_units(x64):
    rng = np.random.default_rng(0)
    mean, doubt, noise, y = rng.normal(size=9), rng.uniform(0, 2, 9), 0.7, 100 + 5 * rng.normal(size=9)
    predictive = given_normals(mean, doubt, noise, scaling=Scaling(0.0, 1.0, 100.0, 5.0))
    exact = stats.norm(100 + 5 * mean, 5 * np.sqrt(doubt**2 + noise**2))
    np.testing.assert_allclose(predictive.mean, exact.mean(), rtol=1e-12)
    np.testing.assert_allclose(predictive.std, exact.std(), rtol=1e-12)
    np.testing.assert_allclose(predictive.epistemic_std, 5 * doubt, rtol=1e-12)
    np.testing.assert_allclose(predictive.aleatoric_std, np.full(9, 3.5), rtol=1e-12)
    np.testing.assert_allclose(predictive.log_density(y), exact.logpdf(y), rtol=1e-10)
    np.testing.assert_allclose(predictive.cumulative(y), exact.cdf(y), atol=1e-12)
    np.testing.assert_allclose(np.stack(predictive.interval(0.8)), exact.interval(0.8), rtol=1e-9)
    z = (y - exact.mean()) / exact.std()
    closed = exact.std() * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
    assert crps(predictive, y) == pytest.approx(closed.mean(), rel=1e-5)


def test_all_scores_apply():
    assert set(ws.scores(given_classes(TABLE), [1, 2])) == {"accuracy", "nll", "brier", "ece"}
    numbers = given_normals(np.zeros(3), np.ones(3), 1.0)
    assert ws.wasserstein(numbers, given_normals(np.ones(3), np.ones(3), 1.0)).w1 == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[0.5, 0.6]], "must sum to 1, got one off by 0.1"),
        ([[-0.5, 1.5]], "must not be negative, got -0.5"),
        ([[np.nan, 1.0]], "must be finite"),
    ],
)
def test_tables_that_are_no_probabilities(table, message):
    with pytest.raises(ValueError, match=message):
        given_classes(np.array(table))


def test_normals_that_are_none():
    with pytest.raises(ValueError, match="`noise` of given_normals must be positive"):
        given_normals(np.zeros(2), np.ones(2), 0.0)
    with pytest.raises(ValueError, match="must be finite"):
        given_normals(np.array([np.inf]), np.ones(1), 1.0)
