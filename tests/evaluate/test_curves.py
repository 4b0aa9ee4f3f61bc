"""Coverage curves, PIT histograms and the miscalibration area of regressions."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, norm, wasserstein_distance

import weightscape as ws
from weightscape.evaluate import coverage, coverage_curve, miscalibration_area, pit_histogram

GAUSSIAN = ws.likelihoods.Gaussian(scale=0.5)
CURVES = [coverage_curve, miscalibration_area, pit_histogram]


@pytest.fixture
def normal(predictive_of):
    """`build(n)`: N(0, 0.5²) at n points."""
    return lambda num_points: predictive_of(np.zeros((1, num_points, 1)), GAUSSIAN)


def test_the_curve_agrees_with_intervals(predictive_of):
    rng = np.random.default_rng(0)
    predictive, y = predictive_of(rng.normal(size=(4, 60, 1)), GAUSSIAN), rng.normal(scale=0.7, size=60)
    curve = coverage_curve(predictive, y, (0.1, 0.5, 0.9))
    np.testing.assert_array_equal(curve.coverage, [coverage(predictive, y, level) for level in (0.1, 0.5, 0.9)])


def test_a_target_on_the_end_of_its_interval_is_inside(normal):
    level = abs(2 * float(normal(1).cumulative([0.3])[0]) - 1)
    assert coverage_curve(normal(1), [0.3], [level]).coverage[0] == 1


def test_calibrated_targets_stay_in_the_band(normal):
    num_points, probability = 4000, 1 - 1e-8  # nineteen levels and ten bins leave it once in three million
    y = 0.5 * np.random.default_rng(1).normal(size=num_points)
    curve = coverage_curve(normal(num_points), y, band=probability)
    assert np.all((curve.lower <= curve.coverage) & (curve.coverage <= curve.upper))
    np.testing.assert_allclose(curve.level, np.arange(1, 20) / 20)
    np.testing.assert_allclose(curve.upper[8], binom.ppf(1 - 5e-9, num_points, 0.45) / num_points)
    histogram = pit_histogram(normal(num_points), y, band=probability)
    assert np.all((histogram.lower <= histogram.num_values) & (histogram.num_values <= histogram.upper))
    assert miscalibration_area(normal(num_points), y) < 3 / np.sqrt(num_points)  # Kolmogorov: 2 exp(−18)


def test_targets_of_another_spread_have_the_closed_form(normal):
    num_points, factor = 40_000, 1.6
    y = 0.5 * factor * np.random.default_rng(2).normal(size=num_points)
    held = lambda level: 2 * norm.cdf(norm.ppf((1 + level) / 2) / factor) - 1
    curve = coverage_curve(normal(num_points), y)
    error = np.sqrt(held(curve.level) * (1 - held(curve.level)) / num_points)
    assert np.all(np.abs(curve.coverage - held(curve.level)) < 6 * error)
    exact = quad(lambda level: level - held(level), 0, 1)[0]
    assert miscalibration_area(normal(num_points), y) == pytest.approx(exact, abs=3 / np.sqrt(num_points))
    assert pit_histogram(normal(num_points), y).num_values[0] > pit_histogram(normal(num_points), y).upper


def test_the_area_of_few_points_is_exact(normal):
    pits = np.array([0.03, 0.5, 0.61, 0.97, 0.2])
    found = miscalibration_area(normal(5), 0.5 * norm.ppf(pits))
    fine = (np.arange(10**6) + 0.5) / 10**6  # the area is the Wasserstein distance from the uniform
    assert found == pytest.approx(wasserstein_distance(np.abs(2 * pits - 1), fine), abs=2e-6)


def test_the_largest_areas(normal):
    assert miscalibration_area(normal(3), np.full(3, 50.0)) == pytest.approx(0.5)
    assert miscalibration_area(normal(3), np.zeros(3)) == pytest.approx(0.5, abs=1e-6)


def test_a_histogram_by_hand(normal):
    histogram = pit_histogram(normal(6), 0.5 * norm.ppf([0.05, 0.2, 0.3, 0.7, 0.76, 0.9]), 4, band=0.8)
    np.testing.assert_allclose(histogram.edges, [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_array_equal(histogram.num_values, [2, 1, 1, 2])
    within = sum(binom.pmf(k, 6, 0.25) for k in range(histogram.lower, histogram.upper + 1))
    assert within >= 0.8 and (histogram.lower, histogram.upper) == (0, 3)


def test_far_targets_are_in_the_outer_bins(normal):
    np.testing.assert_array_equal(pit_histogram(normal(2), [-99.0, 99.0], 3).num_values, [1, 0, 1])


def test_entries_of_vector_targets_count_one_by_one(predictive_of):
    predictive = predictive_of(np.zeros((1, 3, 2)), GAUSSIAN, y=[[0.0, 0.0]])
    y = 0.5 * norm.ppf([[0.5, 0.02], [0.6, 0.9], [0.3, 0.99]])
    assert pit_histogram(predictive, y, 2).num_values.sum() == 6
    assert coverage_curve(predictive, y, [0.5]).coverage[0] == 0.5


@pytest.mark.parametrize("curve", CURVES)
def test_classes_raise(curve, class_predictive, labels):
    with pytest.raises(ValueError, match="must be asked of a regression, got a classification"):
        curve(class_predictive, labels)


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("y", [[0.0], [0.0, np.nan]])
def test_targets_that_do_not_fit(curve, y, normal):
    with pytest.raises(ValueError, match="`y` must"):
        curve(normal(2), y)


def test_levels_that_do_not_fit(normal):
    with pytest.raises(ValueError, match="A level of coverage_curve must lie strictly between 0 and 1, got 1.5"):
        coverage_curve(normal(2), [0.0, 0.0], (0.5, 1.5))
    with pytest.raises(ValueError, match="`levels` of coverage_curve must hold at least one"):
        coverage_curve(normal(2), [0.0, 0.0], ())
    with pytest.raises(ValueError, match="`num_bins` of pit_histogram must be at least 1"):
        pit_histogram(normal(2), [0.0, 0.0], 0)
    with pytest.raises(ValueError, match="`band` of pit_histogram must lie strictly between 0 and 1"):
        pit_histogram(normal(2), [0.0, 0.0], band=1.0)
