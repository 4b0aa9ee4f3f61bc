"""CRPS against the closed form of Gaussian mixtures.

With A(μ, σ²) = E|N(μ, σ²)| = 2σφ(μ/σ) + μ(2Φ(μ/σ) − 1):

    CRPS = Σ_i w_i A(y − μ_i, σ_i²) − ½ Σ_ij w_i w_j A(μ_i − μ_j, σ_i² + σ_j²)      (Grimit et al. 2006)
"""

import numpy as np
import pytest
from scipy.stats import norm

import weightscape as ws
from weightscape.evaluate import crps, pointwise_crps

HETEROSCEDASTIC = ws.likelihoods.HeteroscedasticGaussian()


def mean_distance(mean, std):
    return 2 * std * norm.pdf(mean / std) + mean * (2 * norm.cdf(mean / std) - 1)


def exact_crps(means, stds, weights, y):
    to_target = weights @ mean_distance(y - means, stds)
    between = mean_distance(means[:, None] - means, np.hypot(stds[:, None], stds))
    return to_target - 0.5 * weights @ between @ weights


def compare(predictive_of, means, stds, weights, targets, rtol):
    means, stds, weights = (np.asarray(values, float) for values in (means, stds, weights))
    weights = weights / weights.sum()
    outputs = np.repeat(np.stack([means, np.log(stds)], axis=-1)[:, None], len(targets), axis=1)
    computed = pointwise_crps(predictive_of(outputs, HETEROSCEDASTIC, weights=weights), targets)
    exact = [exact_crps(means, stds, weights, y) for y in targets]
    np.testing.assert_allclose(computed, exact, rtol=rtol)


def test_one_gaussian(predictive_of):
    targets = [-3.0, 0.0, 0.3, 1.0, 30.0, 1000.0]
    compare(predictive_of, [0.3], [1.0], [1.0], targets, rtol=1e-5)


def test_one_gaussian_in_the_usual_formula(predictive_of):
    y, outputs = np.array([-1.0, 0.5, 2.0]), np.zeros((1, 3, 1))
    z = y / 0.5
    exact = 0.5 * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    predictive = predictive_of(outputs, ws.likelihoods.Gaussian(scale=0.5))
    assert crps(predictive, y) == pytest.approx(exact.mean(), rel=1e-5)


@pytest.mark.parametrize("std", [0.3, 1e-3, 1e-5])
def test_narrow_components_far_apart(std, predictive_of):
    compare(predictive_of, [0.0, 1.0], [std, std], [1, 2], [0.0, 0.3, 1.0, 2.0], rtol=1e-4)


def test_narrow_and_wide_components(predictive_of):
    compare(predictive_of, [0.0, 100.0], [1e-2, 10.0], [9, 1], [0.0, 0.01, 5.0, 100.0], rtol=1e-4)


def test_many_components_of_all_widths(predictive_of):
    rng = np.random.default_rng(0)
    means, stds = rng.normal(size=500), np.exp(rng.normal(-1, 1.5, size=500))
    compare(predictive_of, means, stds, rng.dirichlet(np.ones(500)), [-1.0, 0.0, 5.0], rtol=5e-4)


def test_many_narrow_components_in_two_clusters(predictive_of):
    rng = np.random.default_rng(1)
    means = np.r_[rng.normal(0, 0.005, 300), rng.normal(1, 0.005, 300)]
    compare(predictive_of, means, np.full(600, 1e-3), np.ones(600), [0.0, 0.5, 1.2], rtol=1e-4)


def test_scaled_vector_targets_in_chunks(predictive_of):
    rng = np.random.default_rng(2)
    outputs, y = rng.normal(size=(6, 11, 2)), rng.normal(20, 10, size=(11, 2))
    shift, scale = np.array([10.0, 20.0]), np.array([3.0, 7.0])
    scaling = ws.data.Scaling(0.0, 1.0, shift, scale)
    arguments = (outputs, ws.likelihoods.Gaussian(scale=0.5))
    settings = {"y": [[0.0, 0.0]], "scaling": scaling}
    held = pointwise_crps(predictive_of(*arguments, **settings), y)
    recomputed = pointwise_crps(predictive_of(*arguments, **settings, memory=1), y)
    means, even = outputs * scale + shift, np.full(6, 1 / 6)
    exact = [[exact_crps(means[:, n, j], np.full(6, scale[j] / 2), even, y[n, j]) for j in (0, 1)] for n in range(11)]
    np.testing.assert_allclose(held, exact, rtol=2e-5)
    np.testing.assert_allclose(recomputed, held, rtol=1e-5)


def test_a_far_draw_without_weight_changes_nothing(predictive_of):
    outputs = np.array([[[0.0, 0.0]], [[1e8, 0.0]]])
    with np.errstate(divide="ignore"):
        predictive = predictive_of(outputs, HETEROSCEDASTIC, weights=[1.0, 0.0])
    exact = exact_crps(np.zeros(1), np.ones(1), np.ones(1), 0.5)
    assert crps(predictive, [0.5]) == pytest.approx(exact, rel=1e-5)


def test_classes_raise(class_predictive, labels):
    with pytest.raises(ValueError, match="`crps` must be asked of a regression, got a classification. Use `brier`"):
        crps(class_predictive, labels)
