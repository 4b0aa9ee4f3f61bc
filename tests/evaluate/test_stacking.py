"""Stacking and pseudo-BMA weights, against closed forms, a grid, a certificate of the best, and ArviZ."""

import arviz_stats
import jax
import numpy as np
import pytest
import xarray
from scipy.special import expit
from scipy.stats import norm

from weightscape.core import InputError
from weightscape.evaluate import pseudo_bma_plus_weights, pseudo_bma_weights, stacking_weights


def table(seed, num_models=4, num_points=50):
    """Log densities of points under normals of different places and widths, some far off."""
    generator = np.random.default_rng(seed)
    y, means = generator.normal(size=num_points), generator.normal(size=(num_models, 1))
    return norm.logpdf(y, means, np.exp(generator.normal(size=(num_models, 1))))


def mean_log_density(weights, log_densities):
    return np.mean(np.log(weights @ np.exp(log_densities)))


def test_two_models_that_share_the_points_have_the_share_of_each():
    # m of n points are a times likelier under the first, the others a times likelier under the second: by symmetry of
    # d/dw [m log(w a + 1 − w) + (n − m) log(w + (1 − w) a)] = 0,   w = (m (a + 1) / n − 1) / (a − 1).
    a, m, n = 9.0, 7, 10
    log_densities = np.log(np.where(np.arange(n) < m, [[a], [1.0]], [[1.0], [a]])) - 300.0
    w = (m * (a + 1) / n - 1) / (a - 1)
    np.testing.assert_allclose(stacking_weights(log_densities), [w, 1 - w], atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_no_other_weights_are_better(seed):
    log_densities = table(seed)
    weights = stacking_weights(log_densities)
    assert np.all(weights >= 0) and weights.sum() == pytest.approx(1, abs=1e-14)
    # f is concave, so nothing exceeds f(w) by more than max_k ∂f/∂w_k − 1.
    densities = np.exp(log_densities)
    assert np.max(np.mean(densities / (weights @ densities), axis=1)) - 1 < 1e-10
    random = np.random.default_rng(1).dirichlet(np.full(4, 0.3), size=500)
    assert max(mean_log_density(each, log_densities) for each in random) <= mean_log_density(weights, log_densities)


def test_a_grid_finds_the_same_two_weights():
    log_densities = table(3, num_models=2)
    grid = np.linspace(0, 1, 100_001)
    values = np.mean(np.log(np.stack([grid, 1 - grid], axis=1) @ np.exp(log_densities)), axis=1)
    assert stacking_weights(log_densities)[0] == pytest.approx(grid[np.argmax(values)], abs=2e-5)


def test_what_is_never_best_gets_nothing_and_twins_share():
    log_densities = table(0)
    worse = np.concatenate([log_densities, log_densities[:1] - 0.1])
    assert stacking_weights(worse)[-1] < 1e-9
    best = log_densities[[np.argmax(log_densities.sum(axis=1))]]
    np.testing.assert_allclose(stacking_weights(np.concatenate([best, best])), [0.5, 0.5])
    assert stacking_weights(best) == pytest.approx([1.0])
    impossible = np.array([[0.0, -np.inf, 0.0], [-1.0, -1.0, -1.0]])
    w = stacking_weights(impossible)  # 2 log(w + (1 − w)/e) + log(1 − w) is largest at w = 2/3 − 1/(3 (e − 1))
    assert w[0] == pytest.approx(2 / 3 - 1 / (3 * (np.e - 1)), abs=1e-9)


def test_pseudo_bma_is_a_softmax_of_sums():
    log_densities = np.array([[-1.0, -2.0, -0.5], [-1.5, -1.0, -0.4]])
    np.testing.assert_allclose(pseudo_bma_weights(log_densities), [expit(-0.6), expit(0.6)], rtol=1e-12)
    np.testing.assert_allclose(pseudo_bma_weights(log_densities - 1e4), [expit(-0.6), expit(0.6)], rtol=1e-9)


def test_pseudo_bma_plus_averages_over_the_bootstrap():
    # Two points and two models: the difference is n (α d_1 + (1 − α) d_2) with α uniform, so that the weight is
    # ∫ expit(n (d_2 + α (d_1 − d_2))) dα = [log(1 + exp(n d_1)) − log(1 + exp(n d_2))] / (n (d_1 − d_2)).
    d = np.array([1.3, -0.4])
    exact = (np.logaddexp(0, 2 * d[0]) - np.logaddexp(0, 2 * d[1])) / (2 * (d[0] - d[1]))
    found = pseudo_bma_plus_weights(jax.random.key(0), [d, [0.0, 0.0]], num_resamples=20_000)
    assert found.sum() == pytest.approx(1)
    assert found[0] == pytest.approx(exact, abs=5 * 0.5 / np.sqrt(20_000))  # a weight's spread is at most 1/2


def as_arviz(values):
    """Log densities in the form that ArviZ compares, with none of them from draws."""
    total, error = values.sum(), np.sqrt(len(values) * values.var())
    pointwise = xarray.DataArray(values, dims=["point"])
    return arviz_stats.utils.ELPDData(
        "loo", total, error, 0.0, 1000, len(values), "log", False, 0.7, elpd_i=pointwise, pareto_k=0 * pointwise
    )


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # ArviZ's use of pandas
@pytest.mark.parametrize("method", ["stacking", "pseudo-bma", "bb-pseudo-bma"])
def test_arviz_weighs_alike(method):
    nearly_equal = -1 + np.random.default_rng(6).normal(scale=0.1, size=(3, 200))
    log_densities = table(6, num_models=3, num_points=200) if method == "stacking" else nearly_equal
    names = ["a", "b", "c"]
    theirs = arviz_stats.compare(dict(zip(names, map(as_arviz, log_densities), strict=True)), method=method)
    ours = {
        "stacking": lambda: stacking_weights(log_densities),
        "pseudo-bma": lambda: pseudo_bma_weights(log_densities),
        "bb-pseudo-bma": lambda: pseudo_bma_plus_weights(jax.random.key(0), log_densities),
    }[method]()
    if method == "stacking":  # theirs stops at a tolerance of the loss, and must not be better
        found = theirs["weight"][names].to_numpy()
        assert mean_log_density(found / found.sum(), log_densities) <= mean_log_density(ours, log_densities) + 1e-12
    # Of the bootstrap 1,000 and 2,000 resamples: at most 1/2 √(1/1000 + 1/2000) each, five times.
    tolerance = {"stacking": 2e-3, "pseudo-bma": 1e-9, "bb-pseudo-bma": 0.1}[method]
    np.testing.assert_allclose(theirs["weight"][names].to_numpy(), ours, atol=tolerance)


@pytest.mark.parametrize("weights", [stacking_weights, pseudo_bma_weights])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([0.0, 1.0], "must have shape \\(model, point\\)"),
        ([[0.0, np.nan]], "numbers below infinity, got 1"),
        ([[0.0, np.inf]], "numbers below infinity, got 1"),
        ([[0.0, -np.inf], [0.0, -np.inf]], "possible under some model, got none at points \\[1\\]"),
    ],
)
def test_tables_that_mean_nothing_are_refused(weights, bad, message):
    with pytest.raises(InputError, match=message):
        weights(bad)
