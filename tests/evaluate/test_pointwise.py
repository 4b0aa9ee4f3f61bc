"""Scores of single points average to the scores of all."""

import numpy as np
import pytest

import weightscape as ws
from weightscape.evaluate import MeanScore, ece, squared_error, wrong
from weightscape.evaluate.pointwise import CLASS_SCORES, NUMBER_SCORES, calibration_gaps


def test_classes(class_predictive, labels):
    found = {name: score(class_predictive, labels) for name, score in CLASS_SCORES.items()}
    assert found == pytest.approx(dict(ws.scores(class_predictive, labels)), rel=1e-12)


@pytest.mark.parametrize("shape", [(9,), (9, 2)])
def test_numbers(shape, predictive_of):
    rng = np.random.default_rng(0)
    outputs, y = rng.normal(size=(4, 9, shape[-1] if len(shape) == 2 else 1)), rng.normal(size=shape)
    predictive = predictive_of(outputs, ws.likelihoods.Gaussian(scale=0.5), y=y[:1])
    found = {name: score(predictive, y) for name, score in NUMBER_SCORES.items()}
    assert found == pytest.approx(dict(ws.scores(predictive, y)), rel=1e-12)


def test_a_table_by_hand():
    table, y = np.array([[0.7, 0.3], [0.4, 0.6], [0.5, 0.5]]), [0, 0, 0]
    np.testing.assert_array_equal(wrong(table, y), [0, 1, 0])
    np.testing.assert_allclose(calibration_gaps(table, y, 2), [[0, 0.3], [0, -0.6], [0, 0.5]])
    assert MeanScore(lambda p, y: calibration_gaps(p, y, 3), lambda means: np.abs(means).sum(1))(
        table, y
    ) == pytest.approx(ece(table, y, 3))


def test_the_wrong_task_raises(class_predictive, labels):
    with pytest.raises(ValueError, match="`squared_error` must be asked of a regression"):
        squared_error(class_predictive, labels)
