"""Uncertainties of single points, against sums written out."""

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import entropy as scipy_entropy

import weightscape as ws
from weightscape.evaluate import uncertainty

LOGITS = np.random.default_rng(0).normal(scale=2, size=(5, 200, 4))
WEIGHTS = np.array([0.1, 0.2, 0.3, 0.3, 0.1])


def test_classes(class_predictive):
    each = softmax(LOGITS, axis=2)
    table = np.tensordot(WEIGHTS, each, 1)
    total, expected = scipy_entropy(table, axis=1), WEIGHTS @ scipy_entropy(each, axis=2)
    np.testing.assert_allclose(uncertainty.entropy(class_predictive), total, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(uncertainty.entropy(table), total, rtol=1e-12)
    np.testing.assert_allclose(uncertainty.least_confidence(table), 1 - table.max(1), rtol=1e-12)
    np.testing.assert_allclose(uncertainty.mutual_information(class_predictive), total - expected, atol=2e-6)


def test_a_vector_target_has_the_root_mean_square_of_its_entries(predictive_of):
    outputs = np.random.default_rng(1).normal(size=(4, 9, 2))
    scaling = ws.data.Scaling(0.0, 1.0, np.array([1.0, 2.0]), np.array([3.0, 7.0]))
    predictive = predictive_of(outputs, ws.likelihoods.Gaussian(scale=0.5), y=[[0.0, 0.0]], scaling=scaling)
    variance = outputs.var(axis=0) * np.array([9.0, 49.0])
    np.testing.assert_allclose(uncertainty.epistemic_std(predictive), np.sqrt(variance.mean(1)), rtol=1e-5)
    noisy = variance + 0.25 * np.array([9.0, 49.0])
    np.testing.assert_allclose(uncertainty.std(predictive), np.sqrt(noisy.mean(1)), rtol=1e-5)


@pytest.mark.parametrize("name", sorted(uncertainty.UNCERTAINTIES))
def test_a_name_stands_for_its_function(name):
    assert uncertainty.chosen_uncertainty("`by`", name) is getattr(uncertainty, name)
