"""Risk–coverage curves and their area, against brute-force sums over all orders."""

import itertools

import numpy as np
import pytest

import weightscape as ws
from weightscape.evaluate import accuracy, aurc, risk_coverage, rmse, squared_error, uncertainty, wrong


def brute_force(unsure, errors):
    """The average curve over every order of the points that sorts the uncertainties."""
    orders = [o for o in itertools.permutations(range(len(errors))) if all(np.diff(np.take(unsure, o)) >= 0)]
    curves = [[np.mean(np.take(errors, order[: k + 1])) for k in range(len(errors))] for order in orders]
    return np.mean(curves, axis=0)


def test_a_curve_by_hand():
    curve = risk_coverage([0.3, 0.1, 0.2, 0.4], [1, 0, 0, 1])
    np.testing.assert_allclose(curve.coverage, [0.25, 0.5, 0.75, 1.0])
    np.testing.assert_allclose(curve.risk, [0, 0, 1 / 3, 1 / 2])
    assert curve.area == aurc([0.3, 0.1, 0.2, 0.4], [1, 0, 0, 1]) == pytest.approx((1 / 3 + 1 / 2) / 4)


@pytest.mark.parametrize("unsure", [[3, 1, 2, 5, 4], [1, 1, 2, 2, 2], [0, 0, 0, 0, 0], [2, 1, 2, 1, 3]])
def test_equal_uncertainties_are_averaged_over_their_orders(unsure):
    errors = [0.5, 2.0, 0.0, 1.0, 7.0]
    exact = brute_force(unsure, errors)
    np.testing.assert_allclose(risk_coverage(unsure, errors).risk, exact, rtol=1e-12)
    assert aurc(unsure, errors) == pytest.approx(exact.mean(), rel=1e-12)


def test_the_end_of_the_curve_is_the_score_of_all_points(class_predictive, labels):
    curve = risk_coverage(uncertainty.mutual_information(class_predictive), wrong(class_predictive, labels))
    assert curve.risk[-1] == pytest.approx(1 - accuracy(class_predictive, labels), rel=1e-12)


def test_numbers_by_their_std(predictive_of):
    rng = np.random.default_rng(0)
    outputs, y = rng.normal(size=(3, 7, 2)), rng.normal(size=7)
    predictive = predictive_of(outputs, ws.likelihoods.HeteroscedasticGaussian())
    std = np.sqrt(outputs[..., 0].var(0) + np.exp(2 * outputs[..., 1]).mean(0))
    errors = (outputs[..., 0].mean(0) - y) ** 2
    curve = risk_coverage(uncertainty.std(predictive), squared_error(predictive, y))
    order = np.argsort(std)
    np.testing.assert_allclose(curve.risk, np.cumsum(errors[order]) / np.arange(1, 8), rtol=1e-4)
    assert curve.risk[-1] == pytest.approx(rmse(predictive, y) ** 2, rel=1e-12)


@pytest.mark.parametrize(
    ("unsure", "errors", "message"),
    [
        ([[0.1]], [1], "`uncertainty` of risk_coverage must have shape"),
        ([], [], "`uncertainty` of risk_coverage must have shape"),
        ([0.1, 0.2], [1], "`error` of risk_coverage must have shape \\(2,\\), got \\(1,\\)"),
        ([0.1, np.nan], [1, 0], "`uncertainty` of risk_coverage must be finite"),
    ],
)
def test_numbers_that_do_not_fit(unsure, errors, message):
    with pytest.raises(ValueError, match=message):
        aurc(unsure, errors)


def test_text_raises():
    with pytest.raises(TypeError, match="`error` of risk_coverage must hold numbers"):
        aurc([0.1, 0.2], ["a", "b"])
