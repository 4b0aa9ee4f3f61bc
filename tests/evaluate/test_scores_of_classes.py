"""Accuracy, NLL, Brier score and ECE against other implementations."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss

import weightscape as ws
from weightscape.evaluate import accuracy, brier, ece, nll, reliability


def test_accuracy_is_scikit_learns(class_predictive, labels):
    guessed = np.argmax(class_predictive.probabilities, axis=1)
    assert accuracy(class_predictive, labels) == pytest.approx(accuracy_score(labels, guessed), abs=1e-12)


def test_nll_is_scikit_learns_log_loss(class_predictive, labels):
    probabilities = np.asarray(class_predictive.probabilities, np.float64)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    assert nll(class_predictive, labels) == pytest.approx(log_loss(labels, probabilities), rel=1e-5)


def test_brier_by_brute_force(class_predictive, labels):
    p = np.asarray(class_predictive.probabilities, np.float64)
    total = sum((p[n, c] - (labels[n] == c)) ** 2 for n in range(200) for c in range(4))
    assert brier(class_predictive, labels) == pytest.approx(total / 200, rel=1e-6)


def test_brier_counts_both_classes():
    assert brier(np.array([[0.75, 0.25]]), [1]) == pytest.approx(2 * 0.75**2)
    assert brier(np.array([[1.0, 0.0]]), [1]) == pytest.approx(2.0)


@pytest.mark.parametrize("num_bins", [1, 4, 15])
def test_ece_by_a_loop_over_bins(num_bins, class_predictive, labels):
    p = np.asarray(class_predictive.probabilities, np.float64)
    confidence, right = p.max(axis=1), np.argmax(p, axis=1) == labels
    error = 0.0
    for b in range(num_bins):
        inside = (confidence >= b / num_bins) & (confidence < (b + 1) / num_bins)
        if inside.any():
            error += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    assert error > 0.1
    assert ece(class_predictive, labels, num_bins) == pytest.approx(error, rel=1e-6)


def test_the_default_of_ece_is_fifteen_bins(class_predictive, labels):
    assert ece(class_predictive, labels) == ece(class_predictive, labels, num_bins=15)
    assert len(reliability(class_predictive, labels).accuracy) == 15


def test_reliability_of_hand_made_bins():
    table = np.array([[0.55, 0.45], [0.59, 0.41], [0.1, 0.9], [0.0, 1.0]])
    curve = reliability(table, [0, 1, 1, 1], num_bins=10)
    assert curve.num_points.tolist() == [0, 0, 0, 0, 0, 2, 0, 0, 0, 2]
    np.testing.assert_allclose(curve.confidence[[5, 9]], [0.57, 0.95])
    np.testing.assert_allclose(curve.accuracy[[5, 9]], [0.5, 1.0])
    assert np.isnan(curve.accuracy[0])
    assert ece(table, [0, 1, 1, 1], num_bins=10) == pytest.approx(0.5 * 0.07 + 0.5 * 0.05)


def test_calibrated_predictions_have_a_small_ece():
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(3), size=20_000)
    y = np.array([rng.choice(3, p=row) for row in p[:4000]])
    # Each bin's error is at most about √(0.25 / n_b); their weighted sum at most √(0.25 · 15 / n).
    assert ece(p[:4000], y) < np.sqrt(0.25 * 15 / 4000)
    assert ece(p[:4000] ** 4 / (p[:4000] ** 4).sum(1, keepdims=True), y) > 0.15


@pytest.mark.parametrize("score", [accuracy, brier, ece])
@pytest.mark.parametrize(
    ("table", "y", "message"),
    [
        (np.full((3, 2), 0.5), [0, 1], r"`y` must have shape \(3,\), got \(2,\)"),
        (np.full((2, 2), 0.5), [0, 2], r"`y` must lie in 0\.\.1, got 0\.\.2"),
        (np.full((2, 2), 0.5), [-1, 0], r"`y` must lie in 0\.\.1, got -1\.\.0"),
        (np.full((2, 2), 0.5), [0.0, 1.0], "`y` must hold whole numbers"),
        (np.array([[2.0, -1.0]]), [0], "Probabilities must not be negative"),
        (np.array([[2.0, 1.0]]), [0], "Probabilities of a point must sum to 1, got 3"),
        (np.array([[np.nan, 1.0]]), [0], "Probabilities must be finite"),
    ],
)
def test_tables_and_labels_that_do_not_fit(score, table, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        score(table, y)


@pytest.mark.parametrize("score", [accuracy, brier, ece])
def test_regressions_raise(score, predictive_of):
    predictive = predictive_of(np.zeros((1, 2, 1)), ws.likelihoods.Gaussian(scale=0.5))
    with pytest.raises(ValueError, match="must be asked of a classification, got a regression"):
        score(predictive, [0, 1])
