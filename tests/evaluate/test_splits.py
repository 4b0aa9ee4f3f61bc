"""Means and paired differences over splits, against the textbook's sums."""

import math

import numpy as np
import pytest

from weightscape.core import InputError
from weightscape.evaluate.splits import SplitScores, difference_over_splits, over_splits, score_over_splits


def rows(method, nll, first=0):
    return [SplitScores("made up", first + i, method, {"nll": float(value)}, 1.0) for i, value in enumerate(nll)]


def test_the_error_is_that_of_a_mean():
    values = np.random.default_rng(0).normal(3.0, 2.0, size=7)
    found = over_splits(list(values))
    deviations = [(value - sum(values) / 7) ** 2 for value in values]
    assert found.value == pytest.approx(sum(values) / 7, rel=1e-12)
    assert found.standard_error == pytest.approx(math.sqrt(sum(deviations) / (7 * 6)), rel=1e-12)
    assert math.isnan(over_splits([1.5]).standard_error)


def test_hard_splits_cancel_in_a_difference():
    hardness = np.array([0.0, 100.0, -40.0, 7.0])
    ours, theirs = rows("hmc", hardness + np.array([1, 2, 1, 2])), rows("ensemble", hardness)
    difference = difference_over_splits(ours, theirs)
    assert difference[2:] == (0, 4) and difference.value == pytest.approx(1.5)
    assert difference_over_splits(theirs, ours).num_below == 4
    assert difference.standard_error == pytest.approx(math.sqrt(1 / 12))  # 4 · ¼ / (4 · 3)
    assert score_over_splits(ours, "nll").standard_error > 20


def test_only_splits_of_both_are_compared():
    failed = SplitScores("made up", 9, "hmc", {}, 1.0, "it does not converge")
    difference = difference_over_splits([*rows("hmc", [5, 6, 8]), failed], rows("ensemble", [1, 2, 50], 1))
    assert difference.num_splits == 2 and difference.value == pytest.approx(((6 - 1) + (8 - 2)) / 2)
    with pytest.raises(InputError, match="must share a split, got none"):
        difference_over_splits(rows("hmc", [1.0]), rows("ensemble", [1.0], first=3))


def test_rows_of_several_methods_are_not_mixed():
    with pytest.raises(InputError, match="one method on one data set"):
        score_over_splits([*rows("hmc", [1.0]), *rows("nuts", [2.0])], "nll")
    with pytest.raises(InputError, match="at least one split"):
        over_splits([])
