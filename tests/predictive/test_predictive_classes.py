"""Probabilities are averaged, and H[E p] = E H[p] + mutual information."""

import numpy as np
import pytest
from scipy.stats import entropy

import weightscape as ws

TWO = ws.likelihoods.Categorical(num_classes=2)


def test_two_components_split_as_in_closed_form(table_draws, points):
    each = np.array([[0.9, 0.1], [0.2, 0.8]])
    draws = table_draws(np.log(each)[:, None, :] + 3.0, TWO, y=[0], log_weights=np.log([0.25, 0.75]))
    predictive = ws.predict(draws, points(1))
    mixed = 0.25 * each[0] + 0.75 * each[1]
    np.testing.assert_allclose(predictive.probabilities, mixed[None], rtol=1e-6)
    expected = 0.25 * entropy(each[0]) + 0.75 * entropy(each[1])
    np.testing.assert_allclose(predictive.entropy, [entropy(mixed)], rtol=1e-6)
    np.testing.assert_allclose(predictive.expected_entropy, [expected], rtol=1e-6)
    np.testing.assert_allclose(predictive.mutual_information, [entropy(mixed) - expected], rtol=1e-5)
    # The information between draw and class, as a divergence from the mixture.
    divergence = 0.25 * entropy(each[0], mixed) + 0.75 * entropy(each[1], mixed)
    np.testing.assert_allclose(predictive.mutual_information, [divergence], rtol=1e-5)


def test_two_certain_draws_that_disagree_know_one_bit(table_draws, points):
    draws = table_draws([[[300.0, -300.0]], [[-300.0, 300.0]]], TWO, y=[0])
    predictive = ws.predict(draws, points(1))
    np.testing.assert_allclose(predictive.probabilities, [[0.5, 0.5]])
    np.testing.assert_allclose(predictive.expected_entropy, [0.0], atol=1e-30)
    np.testing.assert_allclose(predictive.mutual_information, [np.log(2)], rtol=1e-6)


def test_rare_classes_stay_positive_when_the_first_draw_is_certain(table_draws, points):
    logits = np.tile([[[0.0, 25.0]]], (9, 1, 1))
    logits[0] = [[25.0, 0.0]]
    log_weights = np.r_[-30.0, np.zeros(8)]
    probabilities = ws.predict(table_draws(logits, TWO, y=[0], log_weights=log_weights), points(1)).probabilities
    exact = (np.exp(-30) * 1 + 8 / (1 + np.exp(25))) / (8 + np.exp(-30))
    np.testing.assert_allclose(probabilities[0, 0], exact, rtol=1e-4)


def test_draws_that_agree_hold_no_information(table_draws, points):
    logits = np.tile(np.random.default_rng(0).normal(size=(1, 50, 4)), (11, 1, 1))
    predictive = ws.predict(table_draws(logits, ws.likelihoods.Categorical(num_classes=4), y=[0]), points(50))
    information = np.asarray(predictive.mutual_information)
    assert information.shape == (50,)
    assert np.all(information >= 0)
    assert np.all(information < 1e-6)


def test_bernoulli_has_two_classes(table_draws, points):
    logits = np.random.default_rng(1).normal(size=(3, 5, 1))
    predictive = ws.predict(table_draws(logits, ws.likelihoods.Bernoulli(), y=[0]), points(5))
    one = np.mean(1 / (1 + np.exp(-logits[..., 0])), axis=0)
    np.testing.assert_allclose(predictive.probabilities, np.stack([1 - one, one], axis=1), rtol=1e-5)


@pytest.mark.parametrize("quantity", ["mean", "std", "variance", "epistemic_std", "aleatoric_std"])
def test_numbers_of_a_classification_raise(quantity, table_draws, points):
    predictive = ws.predict(table_draws([[[0.0, 1.0]]], TWO, y=[0]), points(1))
    with pytest.raises(ValueError, match=f"`{quantity}` must be asked of a regression, got a classification. Use"):
        getattr(predictive, quantity)


def test_functions_of_a_regression_raise_for_classes(table_draws, points):
    predictive = ws.predict(table_draws([[[0.0, 1.0]]], TWO, y=[0]), points(1))
    for ask in (lambda: predictive.quantile(0.5), predictive.interval, lambda: predictive.cumulative([0])):
        with pytest.raises(ValueError, match="Use `probabilities`"):
            ask()
