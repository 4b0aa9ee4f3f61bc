"""Samples of y have the predictive's moments, within a point and between points."""

import jax
import numpy as np
import pytest

import weightscape as ws

NUM_SAMPLES = 20_000


def test_samples_share_a_draw_across_points(table_draws, points):
    outputs = np.array([[[0.0], [1.0]], [[2.0], [-3.0]]])
    scaling = ws.data.Scaling(0.0, 1.0, 5.0, 2.0)
    draws = table_draws(outputs, ws.likelihoods.Gaussian(scale=0.5), log_weights=np.log([0.25, 0.75]), scaling=scaling)
    predictive = ws.predict(draws, points(2))
    samples = np.asarray(predictive.sample(jax.random.key(0), NUM_SAMPLES))
    assert samples.shape == (NUM_SAMPLES, 2)
    std, error = np.asarray(predictive.std), 5 / np.sqrt(NUM_SAMPLES)
    np.testing.assert_array_less(np.abs(samples.mean(0) - predictive.mean), error * std)
    np.testing.assert_allclose(samples.var(0), predictive.variance, rtol=error * np.sqrt(2))
    # Means of both points move together: covariance ¼·¾·(0 − 2)(1 + 3), times the squared scale.
    np.testing.assert_allclose(np.cov(samples.T)[0, 1], -1.5 * 4, atol=error * 2 * std.prod())


def test_samples_use_each_draws_own_noise(table_draws, points):
    inferred = ws.likelihoods.Gaussian(scale=ws.priors.Gamma(0.5, 1.0))
    draws = table_draws(np.zeros((2, 1, 1)), inferred, own={"scale": [0.1, 3.0]})
    samples = np.asarray(ws.predict(draws, points(1)).sample(jax.random.key(1), NUM_SAMPLES))
    # The share within ±0.3 (three small scales): ½·0.9973 + ½·0.0797.
    np.testing.assert_allclose(np.mean(np.abs(samples) < 0.3), 0.5385, atol=5 * 0.5 / np.sqrt(NUM_SAMPLES))


def test_classes_come_with_their_probabilities(table_draws, points):
    logits = np.random.default_rng(0).normal(size=(3, 4, 3))
    predictive = ws.predict(table_draws(logits, ws.likelihoods.Categorical(num_classes=3), y=[0]), points(4))
    samples = np.asarray(predictive.sample(jax.random.key(2), NUM_SAMPLES))
    shares = np.stack([np.mean(samples == c, axis=0) for c in range(3)], axis=1)
    np.testing.assert_allclose(shares, predictive.probabilities, atol=5 * 0.5 / np.sqrt(NUM_SAMPLES))


def test_points_have_noise_of_their_own(table_draws, points):
    predictive = ws.predict(table_draws(np.zeros((1, 2, 1)), ws.likelihoods.Gaussian(scale=1.0)), points(2))
    samples = np.asarray(predictive.sample(jax.random.key(3), NUM_SAMPLES))
    assert abs(np.corrcoef(samples.T)[0, 1]) < 5 / np.sqrt(NUM_SAMPLES)


def test_no_samples_raise(table_draws, points):
    predictive = ws.predict(table_draws([[[0.0]]], ws.likelihoods.Gaussian(scale=1.0)), points(1))
    with pytest.raises(ValueError, match="`num_samples` of sample must be at least 1, got 0"):
        predictive.sample(jax.random.key(0), 0)
