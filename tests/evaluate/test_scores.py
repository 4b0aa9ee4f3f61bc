"""Scores together, and the table that compares them."""

import numpy as np
import pytest

import weightscape as ws
from weightscape.evaluate import (
    Scores,
    accuracy,
    brier,
    comparison_table,
    coverage,
    crps,
    ece,
    nll,
    rmse,
)


def test_scores_of_classes(class_predictive, labels):
    scores = ws.scores(class_predictive, labels)
    assert dict(scores) == {
        "accuracy": accuracy(class_predictive, labels),
        "nll": nll(class_predictive, labels),
        "brier": brier(class_predictive, labels),
        "ece": ece(class_predictive, labels),
    }


def test_scores_of_numbers(predictive_of):
    rng = np.random.default_rng(0)
    predictive, y = predictive_of(rng.normal(size=(4, 9, 1)), ws.likelihoods.Gaussian(scale=0.5)), rng.normal(size=9)
    assert dict(ws.scores(predictive, y)) == {
        "rmse": rmse(predictive, y),
        "nll": nll(predictive, y),
        "crps": crps(predictive, y),
        "coverage_90": coverage(predictive, y, 0.9),
    }


def test_scores_print_as_one_line():
    assert str(Scores({"accuracy": 0.96667, "nll": 0.1})) == "accuracy 0.9667  nll 0.1"
    assert repr(Scores({"nll": 0.5})) == "Scores({'nll': 0.5})"


@pytest.mark.parametrize("y", [[0, 1], np.zeros(200), np.full(200, 4)])
def test_labels_that_do_not_fit(y, class_predictive):
    with pytest.raises(ValueError, match="must"):
        ws.scores(class_predictive, y)


def test_the_table_is_markdown():
    table = comparison_table({"HMC": Scores({"accuracy": 0.96667}), "MAP": {"accuracy": 0.9, "nll": 0.25}})
    assert table.splitlines() == [
        "| method | accuracy |  nll |",
        "|:-------|---------:|-----:|",
        "| HMC    |   0.9667 |    – |",
        "| MAP    |      0.9 | 0.25 |",
    ]


def test_an_empty_table_raises():
    with pytest.raises(ValueError, match="must hold at least one row"):
        comparison_table({})
