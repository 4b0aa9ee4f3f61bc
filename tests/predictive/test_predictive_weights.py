"""Importance weights: equal ones change nothing, whole ones are repeated draws."""

import numpy as np
import pytest

import weightscape as ws


def summaries(predictive, y):
    if predictive.task == "classification":
        parts = (predictive.probabilities, predictive.entropy, predictive.expected_entropy)
        return [*parts, predictive.mutual_information, predictive.log_density(y)]
    parts = (predictive.mean, predictive.std, predictive.epistemic_std, predictive.aleatoric_std)
    return [*parts, *predictive.interval(0.9), predictive.log_density(y), predictive.cumulative(y)]


CASES = {
    "regression": (ws.likelihoods.HeteroscedasticGaussian(), [0.0], np.linspace(-1.0, 1.0, 5)),
    "classification": (ws.likelihoods.Categorical(num_classes=2), [0], np.array([0, 1, 1, 0, 1])),
}


@pytest.mark.parametrize("task", CASES)
def test_equal_weights_are_no_weights(task, table_draws, points):
    likelihood, like, y = CASES[task]
    outputs = np.random.default_rng(0).normal(size=(9, 5, 2))
    plain = ws.predict(table_draws(outputs, likelihood, y=like), points(5))
    equal = ws.predict(table_draws(outputs, likelihood, y=like, log_weights=np.full(9, -500.0)), points(5))
    for first, second in zip(summaries(plain, y), summaries(equal, y), strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("task", CASES)
def test_whole_weights_are_repeated_draws(task, table_draws, points):
    likelihood, like, y = CASES[task]
    outputs, times = np.random.default_rng(1).normal(size=(4, 5, 2)), np.array([3, 0, 1, 5])
    with np.errstate(divide="ignore"):
        log_weights = np.log(times)
    weighted = ws.predict(table_draws(outputs, likelihood, y=like, log_weights=log_weights), points(5))
    repeated = ws.predict(table_draws(np.repeat(outputs, times, axis=0), likelihood, y=like), points(5))
    for first, second in zip(summaries(weighted, y), summaries(repeated, y), strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("log_weights", [[np.nan, 0.0], [-np.inf, -np.inf], [np.inf, 0.0]])
def test_weights_without_a_finite_maximum_raise(log_weights, table_draws, points):
    draws = table_draws(np.zeros((2, 1, 1)), ws.likelihoods.Gaussian(scale=0.5), log_weights=log_weights)
    with pytest.raises(ValueError, match="`log_weights` of Draws must have a finite maximum"):
        ws.predict(draws, points(1))
