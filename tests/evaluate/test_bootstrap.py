"""Bootstrap standard errors against closed forms and against all resamples there are.

R resamples know a standard error within a relative 1/√(2R) for values without heavy tails: 1.6 % for 2000. Six of
these, 10 %, are left once in 5e8.
"""

import itertools

import jax
import numpy as np
import pytest

import weightscape as ws
from weightscape.evaluate import MeanScore, bootstrap, brier, ece, paired_difference
from weightscape.evaluate.pointwise import CLASS_SCORES, squared_error

KEY = jax.random.key(0)
VALUES = MeanScore(lambda values, y: values)
ROOT = MeanScore(lambda values, y: values**2, lambda means: np.sqrt(means[:, 0]))


def test_the_error_of_a_mean_is_the_closed_form():
    values = np.random.default_rng(0).gamma(2.0, size=500)
    found = bootstrap(KEY, VALUES, values, np.zeros(500), num_resamples=2000)
    assert found.value == pytest.approx(values.mean(), rel=1e-12)
    assert found.standard_error == pytest.approx(values.std() / np.sqrt(500), rel=0.1)


def test_a_function_of_means_has_the_error_of_the_delta_method():
    values = np.random.default_rng(1).normal(3, size=2000)
    found = bootstrap(KEY, ROOT, values, np.zeros(2000), num_resamples=2000)
    assert found.value == pytest.approx(np.sqrt(np.mean(values**2)), rel=1e-12)
    assert found.standard_error == pytest.approx((values**2).std() / np.sqrt(2000) / (2 * found.value), rel=0.1)


def test_the_median_of_five_by_enumeration():
    values = np.array([0.0, 1.0, 3.0, 7.0, 20.0])
    medians = np.median(np.asarray(list(itertools.product(values, repeat=5))), axis=1)
    found = bootstrap(KEY, lambda rows, y: float(np.median(rows)), values, np.zeros(5), num_resamples=20_000)
    fourth = np.mean((medians - medians.mean()) ** 4) / medians.var() ** 2
    assert found.value == 3.0
    # The relative variance of a variance is (κ − 1)/R, half of it in standard deviations.
    assert found.standard_error == pytest.approx(medians.std(), rel=6 * np.sqrt((fourth - 1) / 20_000) / 2)


def test_rows_and_means_see_the_same_resamples(class_predictive, labels):
    for name, function in (("brier", brier), ("ece", ece)):
        fast = bootstrap(KEY, CLASS_SCORES[name], class_predictive, labels, num_resamples=50)
        slow = bootstrap(KEY, function, class_predictive, labels, num_resamples=50)
        np.testing.assert_allclose(fast, slow, rtol=1e-10)


def test_chunks_are_parts_of_one_stream(monkeypatch):
    values, y = np.random.default_rng(2).normal(size=40), np.zeros(40)
    whole = bootstrap(KEY, VALUES, values, y, num_resamples=100)
    monkeypatch.setattr("weightscape.evaluate.resampling._CHUNK", 40 * 7)
    np.testing.assert_allclose(bootstrap(KEY, VALUES, values, y, num_resamples=100), whole, rtol=1e-12)


def test_another_key_gives_other_resamples():
    values, y = np.random.default_rng(3).normal(size=40), np.zeros(40)
    first, again, other = (bootstrap(key, VALUES, values, y) for key in (KEY, KEY, jax.random.key(1)))
    assert first == again and first.value == other.value and first.standard_error != other.standard_error


def test_a_paired_difference_has_the_error_of_the_differences():
    rng = np.random.default_rng(4)
    hard = 5 * rng.normal(size=800)
    first, second, y = hard + rng.normal(0.2, size=800), hard + rng.normal(size=800), np.zeros(800)
    found = paired_difference(KEY, VALUES, first, second, y, num_resamples=2000)
    assert found.value == pytest.approx(np.mean(first - second), rel=1e-12)
    assert found.standard_error == pytest.approx((first - second).std() / np.sqrt(800), rel=0.1)
    assert paired_difference(KEY, VALUES, first, first, y) == (0.0, 0.0)


def test_errors_cover_the_truth():
    rng, covered = np.random.default_rng(5), 0
    for i in range(200):
        found = bootstrap(jax.random.key(i), VALUES, rng.exponential(size=300), np.zeros(300), num_resamples=200)
        covered += abs(found.value - 1) < 2 * found.standard_error
    assert abs(covered / 200 - 0.95) < 5 * np.sqrt(0.95 * 0.05 / 200)


def test_numbers_of_a_predictive(predictive_of):
    rng = np.random.default_rng(6)
    outputs, y = rng.normal(size=(3, 200, 2)), rng.normal(size=(200, 2))
    predictive = predictive_of(outputs, ws.likelihoods.Gaussian(scale=0.5), y=[[0.0, 0.0]])
    found = bootstrap(KEY, MeanScore(squared_error), predictive, y, num_resamples=2000)
    of_points = np.mean((outputs.mean(0) - y) ** 2, axis=1)  # entries of a point stay together
    assert found.standard_error == pytest.approx(of_points.std() / np.sqrt(200), rel=0.1)
    with pytest.raises(ValueError, match="`bootstrap of a function of rows` must be asked of a classification"):
        bootstrap(KEY, brier, predictive, y)


def test_a_measurement_prints_as_one_line():
    assert str(bootstrap(KEY, VALUES, np.ones(3), np.zeros(3))) == "1 ± 0"


@pytest.mark.parametrize(
    ("values", "y", "num_resamples", "message"),
    [
        ([1.0, 2.0], [0.0], 10, "`y` of bootstrap must have one row for each of 2 points, got shape \\(1,\\)"),
        ([1.0], [0.0], 10, "bootstrap must have at least 2 points, got 1"),
        ([1.0, 2.0], [0.0, 0.0], 1, "`num_resamples` of bootstrap must be at least 2"),
    ],
)
def test_what_does_not_fit(values, y, num_resamples, message):
    for score in (VALUES, lambda rows, y: float(np.mean(rows))):
        with pytest.raises(ValueError, match=message):
            bootstrap(KEY, score, np.asarray(values), y, num_resamples=num_resamples)


def test_scores_that_are_not_defined_raise():
    first_only = lambda rows, y: 0.0 if 0 in rows else np.nan
    with pytest.raises(ValueError, match="Resampled scores of bootstrap must be finite, got [0-9]+ that are not"):
        bootstrap(KEY, first_only, np.arange(5), np.zeros(5))


def test_a_seed_is_no_key(unchecked):
    with pytest.raises(TypeError, match="`key` of bootstrap must be a typed random key, got int"):
        bootstrap(0, VALUES, np.ones(3), np.zeros(3))
