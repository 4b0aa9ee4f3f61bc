"""Scores with standard errors, and the differences of two methods."""

import jax
import numpy as np
import pytest

import weightscape as ws
from weightscape.evaluate import Scores, bootstrap, ece, score_differences, score_errors
from weightscape.evaluate.pointwise import CLASS_SCORES, NUMBER_SCORES

KEY = jax.random.key(0)
GAUSSIAN = ws.likelihoods.Gaussian(scale=0.5)


def test_scores_of_classes(class_predictive, labels):
    found = score_errors(KEY, class_predictive, labels, num_resamples=300)
    assert dict(found) == pytest.approx(dict(ws.scores(class_predictive, labels)), rel=1e-12)
    accuracy = found["accuracy"]
    exact = np.sqrt(accuracy * (1 - accuracy) / 200)
    assert found.errors["accuracy"] == pytest.approx(exact, rel=6 / np.sqrt(600))
    slow = bootstrap(KEY, ece, class_predictive, labels, num_resamples=300)
    assert found.errors["ece"] == pytest.approx(slow.standard_error, rel=1e-10)
    assert found.errors.keys() == CLASS_SCORES.keys()


def test_scores_of_numbers(predictive_of):
    rng = np.random.default_rng(0)
    predictive, y = predictive_of(rng.normal(size=(4, 30, 1)), GAUSSIAN), rng.normal(size=30)
    found = score_errors(KEY, predictive, y, num_resamples=300)
    assert dict(found) == pytest.approx(dict(ws.scores(predictive, y)), rel=1e-12)
    for name, score in NUMBER_SCORES.items():
        alone = bootstrap(KEY, score, predictive, y, num_resamples=300)
        assert found.errors[name] == pytest.approx(alone.standard_error, rel=1e-12)


def test_differences_of_two_methods(predictive_of):
    rng = np.random.default_rng(1)
    outputs, y = rng.normal(size=(4, 100, 1)), rng.normal(size=100)
    first, second = predictive_of(outputs, GAUSSIAN), predictive_of(outputs + 0.1, GAUSSIAN)
    found = score_differences(KEY, first, second, y, num_resamples=2000)
    ours, theirs = ws.scores(first, y), ws.scores(second, y)
    assert dict(found) == pytest.approx({name: ours[name] - theirs[name] for name in ours}, rel=1e-6)
    gaps = np.asarray(second.log_density(y)) - np.asarray(first.log_density(y))
    assert found.errors["nll"] == pytest.approx(gaps.std() / 10, rel=0.1)
    assert found.errors["nll"] < score_errors(KEY, first, y).errors["nll"] / 2
    assert set(score_differences(KEY, first, first, y).errors.values()) == {0.0}


def test_errors_are_printed_where_they_are_known():
    scores = Scores({"accuracy": 0.96667, "nll": 0.1}, {"accuracy": 0.0123})
    assert str(scores) == "accuracy 0.9667 ± 0.012  nll 0.1"
    assert repr(scores) == "Scores({'accuracy': 0.96667, 'nll': 0.1}, errors={'accuracy': 0.0123})"
    assert Scores({"nll": 0.5}).errors == {}
    assert dict(scores) == {"accuracy": 0.96667, "nll": 0.1}


def test_errors_of_other_scores_raise():
    with pytest.raises(ValueError, match="`errors` of Scores must belong to its scores, got \\['ece'\\]"):
        Scores({"nll": 0.5}, {"ece": 0.1})


def test_what_does_not_fit(class_predictive, labels, predictive_of):
    with pytest.raises(ValueError, match="`y` must have shape"):
        score_errors(KEY, class_predictive, labels[:3])
    numbers = predictive_of(np.zeros((1, 200, 1)), GAUSSIAN)
    with pytest.raises(ValueError, match="must be of one task, got a classification and a regression"):
        score_differences(KEY, class_predictive, numbers, labels)


def test_a_table_is_no_predictive(unchecked):
    with pytest.raises(TypeError, match="Predictions of score_errors must be a Predictive, got ndarray"):
        score_errors(KEY, np.ones((3, 2)) / 2, [0, 1, 0])
