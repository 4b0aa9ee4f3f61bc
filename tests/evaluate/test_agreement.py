"""Agreement and total variation of tables written down by hand."""

import numpy as np
import pytest

import weightscape as ws

P = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [1.0, 0.0, 0.0]])
Q = np.array([[0.5, 0.4, 0.1], [0.1, 0.3, 0.6], [0.2, 0.2, 0.6], [0.0, 0.0, 1.0]])


def test_hand_made_tables():
    assert ws.agreement(P, Q) == 0.5
    assert ws.total_variation(P, Q) == pytest.approx((0.2 + 0.3 + 0.0 + 1.0) / 4)


def test_symmetric_and_zero_to_itself():
    assert ws.total_variation(P, Q) == ws.total_variation(Q, P)
    assert ws.total_variation(P, P) == 0.0
    assert ws.agreement(Q, Q) == 1.0


def test_predictions_and_tables_mix(class_predictive):
    table = np.asarray(class_predictive.probabilities)
    assert ws.agreement(class_predictive, table) == 1.0
    swapped = table[:, ::-1].copy()
    assert ws.total_variation(class_predictive, swapped) == pytest.approx(
        np.mean(np.abs(table - swapped).sum(1)) / 2, rel=1e-6
    )


@pytest.mark.parametrize("measure", [ws.agreement, ws.total_variation])
def test_what_cannot_be_compared_raises(measure, predictive_of):
    with pytest.raises(ValueError, match=r"must have the same shape, got \(4, 3\) and \(3, 3\)"):
        measure(P, Q[:3])
    regression = predictive_of(np.zeros((1, 2, 1)), ws.likelihoods.Gaussian(scale=0.5))
    with pytest.raises(ValueError, match="must be asked of a classification, got a regression"):
        measure(regression, regression)
