"""Conformal intervals and sets: their coverage is exact, by giving every point its turn as the new one."""

import numpy as np
import pytest
from scipy.stats import betabinom

import weightscape as ws
from weightscape.evaluate import conformal_interval, conformal_sets, coverage

GAUSSIAN = ws.likelihoods.Gaussian(scale=0.5)
NOISY = ws.likelihoods.HeteroscedasticGaussian()

# ⌈12 level⌉ of twelve points are covered.
RANKS = [(0.05, 1), (0.5, 6), (0.51, 7), (0.6, 8), (0.75, 9), (0.9, 11)]


@pytest.fixture
def twelve():
    """Outputs (draw, point, (mean, log std)) of three draws at twelve points, and targets far off."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(3, 12, 2)), 4 * rng.normal(size=12)


@pytest.fixture
def tables():
    """`build(n, c)`: probabilities of c classes at n points, and labels that do not come from them."""

    def build(num_points, num_classes=3):
        rng = np.random.default_rng(num_points)
        return rng.dirichlet(np.ones(num_classes), num_points), rng.integers(0, num_classes, num_points)

    return build


def covered(y, ends):
    return (ends[0] <= y) & (y <= ends[1])


def turns(num_points):
    """(all but i, only i) for every i."""
    return [(np.delete(np.arange(num_points), i), np.array([i])) for i in range(num_points)]


def normalised(outputs, y):
    """|y − mean| / std of a mixture of normals, from its draws."""
    means, variances = outputs[..., 0], np.exp(2 * outputs[..., 1])
    return np.abs(y - means.mean(0)) / np.sqrt(variances.mean(0) + means.var(0))


def is_typical(scores, new, level):
    """Whether the conformal p-value of a new score, its share of scores as large, exceeds 1 − level."""
    return (1 + sum(score >= new for score in scores)) / (len(scores) + 1) > 1 - level + 1e-12


@pytest.mark.parametrize(("level", "rank"), RANKS)
def test_intervals_cover_in_the_exact_share(level, rank, twelve, predictive_of):
    outputs, y = twelve
    build = lambda rows: predictive_of(outputs[:, rows], NOISY)
    held = [covered(y[new], conformal_interval(build(rest), y[rest], build(new), level))[0] for rest, new in turns(12)]
    assert sum(held) == rank


@pytest.mark.parametrize(("level", "rank"), RANKS)
def test_sets_hold_the_label_in_the_exact_share(level, rank, tables):
    table, labels = tables(12)
    held = [conformal_sets(table[rest], labels[rest], table[new], level)[0, labels[new[0]]] for rest, new in turns(12)]
    assert sum(held) == rank


@pytest.mark.parametrize(("level", "rank"), [(0.07, 7), (0.29, 29), (0.55, 55), (0.58, 58), (0.99, 99)])
def test_a_level_is_the_decimal_that_was_written(level, rank, tables):
    table, labels = tables(100)
    held = [conformal_sets(table[rest], labels[rest], table[new], level)[0, labels[new[0]]] for rest, new in turns(100)]
    assert sum(held) == rank


@pytest.mark.parametrize("level", [0.2, 0.5, 0.8, 0.9])
def test_intervals_hold_the_targets_of_large_p_values(level, x64, twelve, predictive_of):
    outputs, y = twelve
    scores, grid = normalised(outputs[:, :11], y[:11]), np.linspace(-60, 60, 2001)
    ends = conformal_interval(
        predictive_of(outputs[:, :11], NOISY), y[:11], predictive_of(outputs[:, 11:], NOISY), level
    )
    wanted = [is_typical(scores, normalised(outputs[:, 11:], value)[0], level) for value in grid]
    assert 0 < sum(wanted) < len(grid)
    np.testing.assert_array_equal(covered(grid, ends), wanted)


@pytest.mark.parametrize("level", [0.2, 0.5, 0.8, 0.95])
def test_sets_hold_the_classes_of_large_p_values(level, tables):
    (table, labels), (new, _) = tables(30, 4), tables(50, 4)
    scores = [1 - row[label] for row, label in zip(table, labels, strict=True)]
    wanted = [[is_typical(scores, 1 - p, level) for p in row] for row in new]
    assert 0 < np.sum(wanted) < new.size
    np.testing.assert_array_equal(conformal_sets(table, labels, new, level), wanted)


def test_a_set_may_be_empty_and_tiny_probabilities_differ():
    known = np.array([[1.0, 1e-20], [1.0, 1e-30], [1.0, 1e-25]])
    new = np.array([[1 - 1e-22, 1e-22], [1.0, 1e-27]])
    np.testing.assert_array_equal(conformal_sets(known, [1, 1, 1], new, 0.5), [[True, True], [True, False]])
    assert not conformal_sets(np.array([[0.9, 0.1]]), [0], np.array([[0.6, 0.4]]), 0.5).any()


def test_predictions_are_as_good_as_their_table(class_predictive, labels):
    table = class_predictive.probabilities
    sets = conformal_sets(class_predictive, labels, class_predictive)
    np.testing.assert_array_equal(sets, conformal_sets(table, labels, np.asarray(table)))
    assert sets[np.arange(200), labels].sum() == 181  # the calibration points themselves: ⌈201 · 0.9⌉ of 200


def test_a_spread_wrong_by_any_factor_gives_the_same_intervals(predictive_of, x64):
    rng = np.random.default_rng(1)
    means, log_stds, y = rng.normal(size=20), rng.normal(size=20), rng.normal(size=15)

    def ends(factor):
        outputs = np.stack([means, log_stds + np.log(factor)], axis=1)[None]
        return conformal_interval(predictive_of(outputs[:, :15], NOISY), y, predictive_of(outputs[:, 15:], NOISY))

    for factor in (1 / 3, 50.0):
        np.testing.assert_allclose(ends(factor), ends(1.0), rtol=1e-12)


def test_predictions_too_narrow_by_three_are_covered_where_quiet_and_where_noisy(predictive_of):
    num_held_out, num_points, level = 999, 8000, 0.9
    rng = np.random.default_rng(2)
    log_std = np.where(np.arange(num_held_out + num_points) % 2, -2.0, 2.0)
    y = np.exp(log_std) * rng.normal(size=len(log_std))
    outputs = np.stack([np.zeros_like(log_std), log_std - np.log(3)], axis=1)[None]
    held_out = predictive_of(outputs[:, :num_held_out], NOISY)
    test, targets = predictive_of(outputs[:, num_held_out:], NOISY), y[num_held_out:]
    inside = covered(targets, conformal_interval(held_out, y[:num_held_out], test, level))
    assert coverage(test, targets, level) < 0.5
    for count, size in [(inside.sum(), 8000), (inside[::2].sum(), 4000), (inside[1::2].sum(), 4000)]:
        law = betabinom(size, 900, 100)  # the normalised residuals have one law, where quiet and where noisy
        assert law.ppf(1e-7) <= count <= law.isf(1e-7)


def test_a_target_on_an_end_is_inside(predictive_of, x64):
    rng = np.random.default_rng(3)
    means, y = rng.normal(size=200), 9 * rng.normal(size=200)  # of 200 entries, alike at all nine points
    predictive = predictive_of(np.tile(means, (1, 9, 1)), ws.likelihoods.Gaussian(scale=0.37), y=np.zeros((1, 200)))
    lower, upper = conformal_interval(predictive, np.tile(y, (9, 1)), predictive)
    assert np.all(covered(y, (lower, upper)))
    np.testing.assert_allclose(np.where(y > means, upper, lower)[0], y, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(("level", "rank"), RANKS)
def test_ties_are_covered_together(level, rank, tables):
    (table, labels), kind = tables(4), np.arange(12) % 4
    table, labels = table[kind], labels[kind]
    held = [conformal_sets(table[rest], labels[rest], table[new], level)[0, labels[new[0]]] for rest, new in turns(12)]
    assert sum(held) == 3 * np.ceil(rank / 3) >= 12 * level


def test_entries_of_vector_targets_are_calibrated_one_by_one(predictive_of):
    rng = np.random.default_rng(4)
    outputs, y = rng.normal(size=(3, 12, 2)), rng.normal(size=(9, 2)) * [1, 20]
    alone = [
        conformal_interval(
            predictive_of(outputs[:, :9, [i]], GAUSSIAN), y[:, i], predictive_of(outputs[:, 9:, [i]], GAUSSIAN)
        )
        for i in range(2)
    ]
    build = lambda rows: predictive_of(outputs[:, rows], GAUSSIAN, y=[[0.0, 0.0]])
    together = conformal_interval(build(slice(9)), y, build(slice(9, 12)))
    np.testing.assert_allclose(together, np.stack(alone, axis=-1), rtol=1e-5)


@pytest.mark.parametrize(("level", "fewest"), [(0.5, 1), (0.9, 9), (0.95, 19), (0.99, 99), (0.85, 6)])
def test_the_fewest_points_for_a_level(level, fewest, tables):
    table, labels = tables(fewest)
    assert conformal_sets(table, labels, table, level)[np.arange(fewest), labels].all()
    if fewest > 1:
        with pytest.raises(ValueError, match=f"level {level} must have at least {fewest} points, got {fewest - 1}"):
            conformal_sets(table[1:], labels[1:], table, level)


def test_intervals_of_bad_input(twelve, predictive_of, class_predictive, labels):
    outputs, y = twelve
    predictive = predictive_of(outputs, NOISY)
    vectors = predictive_of(outputs, GAUSSIAN, y=[[0.0, 0.0]])
    with pytest.raises(ValueError, match="Calibration to level 0.95 must have at least 19 points, got 12. Hold out"):
        conformal_interval(predictive, y, predictive, 0.95)
    with pytest.raises(ValueError, match="`level` of a conformal prediction must lie strictly between 0 and 1, got 1"):
        conformal_interval(predictive, y, predictive, 1.0)
    with pytest.raises(ValueError, match="`y` must have shape \\(12,\\), got \\(11,\\)"):
        conformal_interval(predictive, y[1:], predictive)
    with pytest.raises(
        ValueError, match="A target of `test` of conformal_interval must have shape \\(\\), got \\(2,\\)"
    ):
        conformal_interval(predictive, y, vectors)
    for calibration, targets, test in [(class_predictive, labels, predictive), (predictive, y, class_predictive)]:
        with pytest.raises(ValueError, match="must be asked of a regression, got a classification. Use `conformal_se"):
            conformal_interval(calibration, targets, test)
    certain = predictive_of(np.full((1, 12, 2), -200.0), NOISY)
    with pytest.raises(ValueError, match="`std` of `test` of conformal_interval must be positive and finite"):
        conformal_interval(predictive, y, certain)


def test_sets_of_bad_input(tables, twelve, predictive_of):
    table, labels = tables(12)
    with pytest.raises(ValueError, match="`test` of conformal_sets must have 3 classes, got 4"):
        conformal_sets(table, labels, tables(12, 4)[0])
    with pytest.raises(ValueError, match="`y` must lie in 0..2, got"):
        conformal_sets(table, labels + 1, table)
    with pytest.raises(ValueError, match="`level` of a conformal prediction must lie strictly between 0 and 1, got 0"):
        conformal_sets(table, labels, table, 0.0)
    with pytest.raises(ValueError, match="Probabilities of a point must sum to 1"):
        conformal_sets(table, labels, 2 * table)
    with pytest.raises(ValueError, match="must be asked of a classification, got a regression"):
        conformal_sets(predictive_of(twelve[0], NOISY), labels, table)
