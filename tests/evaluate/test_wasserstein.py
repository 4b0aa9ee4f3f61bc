"""Wasserstein distances against closed forms of normals, scipy's for atoms, and dense tables of mixtures."""

import numpy as np
import pytest
from scipy.stats import norm, wasserstein_distance

import weightscape as ws
from weightscape.evaluate import pointwise_wasserstein, wasserstein
from weightscape.evaluate.wasserstein import straight_distances

HETEROSCEDASTIC = ws.likelihoods.HeteroscedasticGaussian()
GAUSSIAN = ws.likelihoods.Gaussian(scale=0.5)
QUADRATURE = 4e-3  # what the module states


def normals(predictive_of, means, stds):
    return predictive_of(np.stack([means, np.log(stds)], axis=-1)[None], HETEROSCEDASTIC)


def mixture(predictive_of, means, stds, weights):
    """One point with these components."""
    return predictive_of(np.stack([means, np.log(stds)], axis=-1)[:, None], HETEROSCEDASTIC, weights=weights)


def test_normals_have_the_closed_form(predictive_of):
    pairs = [
        (0, 1, 1, 1),
        (0, 1, 0, 2),
        (0, 1, 0.01, 1),
        (0, 1, 0, 1.01),
        (5, 1e-3, 5, 3),
        (0, 1, 100, 1),
        (3, 2, 1, 3),
    ]
    m1, s1, m2, s2 = np.asarray(pairs, float).T
    found = pointwise_wasserstein(normals(predictive_of, m1, s1), normals(predictive_of, m2, s2))
    np.testing.assert_allclose(found.w2, np.hypot(m1 - m2, s1 - s2), rtol=QUADRATURE)
    # The quantiles differ by N(m, s) of the differences, and W_1 is its mean size.
    mean, std = np.abs(m1 - m2), np.maximum(np.abs(s1 - s2), 1e-12)
    np.testing.assert_allclose(
        found.w1, 2 * std * norm.pdf(mean / std) + mean * (2 * norm.cdf(mean / std) - 1), rtol=QUADRATURE
    )


def test_equal_predictives_are_at_no_distance(predictive_of):
    outputs = np.random.default_rng(0).normal(size=(6, 9, 2))
    predictive = predictive_of(outputs, HETEROSCEDASTIC)
    assert wasserstein(predictive, predictive) == (0.0, 0.0)


def test_narrow_components_are_atoms(predictive_of):
    rng, std = np.random.default_rng(1), 1e-4
    first, second = rng.normal(size=5), rng.normal(0.3, 2, size=7)
    weights = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(7))
    found = wasserstein(
        mixture(predictive_of, first, np.full(5, std), weights[0]),
        mixture(predictive_of, second, np.full(7, std), weights[1]),
    )
    # Each atom is spread by `std`, which moves no distance by more than that.
    assert found.w1 == pytest.approx(wasserstein_distance(first, second, *weights), abs=2 * std, rel=QUADRATURE)
    levels = (np.arange(10**6) + 0.5) / 10**6
    quantiles = [
        np.sort(values)[np.searchsorted(np.cumsum(of_values[np.argsort(values)]), levels)]
        for values, of_values in zip((first, second), weights, strict=True)
    ]
    assert found.w2 == pytest.approx(np.sqrt(np.mean((quantiles[0] - quantiles[1]) ** 2)), rel=QUADRATURE)


def test_mixtures_of_all_widths(predictive_of):
    rng, grid = np.random.default_rng(2), np.linspace(-40, 40, 400_001)
    parts = [(rng.normal(size=30), np.exp(rng.normal(-1, 1, size=30)), rng.dirichlet(np.ones(30))) for _ in range(2)]
    found = wasserstein(*(mixture(predictive_of, *part) for part in parts))
    heights = [sum(w * norm.cdf(grid, m, s) for m, s, w in zip(*part, strict=True)) for part in parts]
    step = grid[1] - grid[0]
    assert found.w1 == pytest.approx(np.sum(np.abs(heights[0] - heights[1])) * step, rel=QUADRATURE)
    levels = (np.arange(10**6) + 0.5) / 10**6
    gap = np.interp(levels, heights[0], grid) - np.interp(levels, heights[1], grid)
    assert found.w2 == pytest.approx(np.sqrt(np.mean(gap**2)), rel=QUADRATURE)


def test_scaled_vector_targets_in_chunks(predictive_of):
    rng = np.random.default_rng(3)
    shift, first_scale, second_scale = np.array([10.0, 20.0]), np.array([3.0, 7.0]), np.array([2.0, 9.0])
    outputs = rng.normal(size=(2, 1, 5, 2))
    p, q = (
        predictive_of(one, GAUSSIAN, y=[[0.0, 0.0]], scaling=ws.data.Scaling(0.0, 1.0, shift, scale), memory=1)
        for one, scale in zip(outputs, (first_scale, second_scale), strict=True)
    )
    apart = outputs[0, 0] * first_scale - outputs[1, 0] * second_scale
    exact = np.hypot(apart, 0.5 * (first_scale - second_scale))
    found = pointwise_wasserstein(p, q)
    assert np.shape(found.w2) == (5, 2)
    np.testing.assert_allclose(found.w2, exact, rtol=QUADRATURE)
    assert wasserstein(p, q).w2 == pytest.approx(exact.mean(), rel=QUADRATURE)


def test_far_draws_without_weight_change_nothing(predictive_of):
    with np.errstate(divide="ignore"):
        p, q = (mixture(predictive_of, np.array([m, 1e8]), np.array([s, 1.0]), [1.0, 0.0]) for m, s in ((0, 1), (1, 2)))
    assert wasserstein(p, q).w2 == pytest.approx(np.sqrt(2), rel=QUADRATURE)


@pytest.mark.parametrize(
    ("edges", "first", "second", "w1", "w2"),
    [
        ([0, 1, 2], [0, 1, 1], [0, 0.5, 1], 1 / 2, np.sqrt(1 / 3)),  # u against 2u
        ([0, 0.5, 1.5, 2], [0, 0.25, 0.75, 1], [0, 0, 1, 1], 1 / 4, np.sqrt(1 / 12)),  # 2u against u + ½
        ([0, 1, 2, 3], [0, 1, 1, 1], [0, 0, 0, 1], 2, 2),  # one moved by 2
    ],
)
def test_uniform_distributions_on_few_edges(edges, first, second, w1, w2):
    found = straight_distances(*(np.asarray(values, float) for values in (edges, first, second)))
    assert found == pytest.approx((w1, w2), rel=1e-12)


def test_classes_raise(class_predictive):
    with pytest.raises(ValueError, match="`wasserstein` must be asked of a regression, got a classification. Use `tot"):
        wasserstein(class_predictive, class_predictive)


def test_other_points_raise(predictive_of):
    p, q = (predictive_of(np.zeros((1, n, 1)), GAUSSIAN) for n in (2, 3))
    with pytest.raises(ValueError, match="must have the same shape, got \\(2,\\) and \\(3,\\). Predict both"):
        wasserstein(p, q)
