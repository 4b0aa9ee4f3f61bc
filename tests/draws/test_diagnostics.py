"""Function-space diagnostics against closed forms, a direct R̂, ArviZ, and the predictive's own sums."""

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats
from tests.draws.made import (
    linear_classification,
    linear_regression,
    made_draws,
    regression_data,
    shift_logits,
    wandering,
    weight_matrix,
)

import weightscape as ws
from weightscape.core import InputError, InputTypeError
from weightscape.core.facts import Facts
from weightscape.draws import function_outputs, streaming

X = np.array([[0.0, 5.0], [1.0, -20.0], [-2.0, 40.0], [0.5, 0.0], [3.0, 10.0]])


def direct_rhat(values: np.ndarray) -> float:
    """Rank-normalised split R̂ of (chain, draw) values, written out: Vehtari et al. (2021), section 4.1."""
    half = values.shape[1] // 2
    split = np.concatenate([values[:, :half], values[:, values.shape[1] - half :]])
    found = []
    for quantity in (split, np.abs(split - np.median(split))):
        ranks = stats.rankdata(quantity).reshape(split.shape)
        scores = special.ndtri((ranks - 3 / 8) / (split.size + 1 / 4))
        within = scores.var(axis=1, ddof=1).mean()
        between = half * scores.mean(axis=1).var(ddof=1)
        found.append(np.sqrt(((half - 1) / half * within + between / half) / within))
    return max(found)


def test_functions_of_a_linear_model_in_original_units():
    draws, data = linear_regression()
    scaling = data.train.scaling
    standard = (X - np.asarray(scaling.x_mean)) / np.asarray(scaling.x_scale)
    linear = np.einsum("pi,cdio->cdpo", standard, weight_matrix(draws))
    expected = float(scaling.y_mean) + float(scaling.y_scale) * linear
    np.testing.assert_allclose(function_outputs(draws, X), expected, rtol=1e-5)
    assert function_outputs(draws).shape == (4, 60, len(draws.example.x), 1)


def test_functions_of_classes_are_probabilities():
    draws, data = linear_classification()
    values = function_outputs(draws, data.test.x)
    np.testing.assert_allclose(values.sum(axis=3), 1.0, rtol=1e-5)
    expected = np.asarray(ws.predict(draws, data.test.x).probabilities)
    np.testing.assert_allclose(values.mean(axis=(0, 1)), expected, rtol=1e-5, atol=1e-6)


def test_a_drift_of_all_logits_is_not_seen():
    draws, data = linear_classification()
    drift = np.linspace(0, 20, 60)[None, :] + np.arange(4)[:, None] * 30.0
    shifted = shift_logits(draws, drift.astype(np.float32))
    logits = jax.vmap(jax.vmap(lambda p: draws.model.network.apply(p, jnp.asarray(X))))
    assert arviz_stats.rhat(np.asarray(logits(shifted.params.network))).max() > 2
    straight, turned = (ws.diagnose(each, data.test.x[:5]).functions.rhat for each in (draws, shifted))
    np.testing.assert_allclose(turned, straight, atol=0.02)  # float32 logits near 100 round at 1e-5


def test_thinning_to_a_number_of_draws():
    draws, _ = linear_regression(2, 50)
    whole = function_outputs(draws, X)
    np.testing.assert_array_equal(function_outputs(draws, X, max_draws=20), whole[:, ::3])
    np.testing.assert_array_equal(function_outputs(draws, X, max_draws=50), whole)


def test_blocks_do_not_change_the_values(monkeypatch):
    draws, data = linear_regression(3, 17)
    whole, lppd = function_outputs(draws, X), ws.running_lppd(draws, data.test)
    small = lambda *arguments: (5, 3)
    monkeypatch.setattr(streaming, "_block_sizes", small)
    np.testing.assert_allclose(function_outputs(draws, X), whole, rtol=1e-6)
    np.testing.assert_allclose(ws.running_lppd(draws, data.test).by_chain, lppd.by_chain, rtol=1e-6)
    np.testing.assert_allclose(ws.running_lppd(draws, data.test).pooled, lppd.pooled, rtol=1e-6)


def test_blocks_fit_in_the_memory_they_are_given():
    draws, _ = linear_regression(4, 60)
    x = jnp.ones((1000, 2))
    widest, weights = 8, 8  # bytes of one point's two inputs, which are the widest array, and of two weights
    num_draws, num_points = streaming._block_sizes(draws.model, draws.params, x, 4 * 1000)
    assert (num_draws, num_points) == (1, 125)
    num_draws, num_points = streaming._block_sizes(draws.model, draws.params, x, 4 * 20_000)
    assert num_points == 1000 and num_draws == 20_000 // (weights + 1000 * widest)
    assert streaming._block_sizes(draws.model, draws.params, x, 1) == (1, 1)


def test_rhat_is_the_direct_one():
    draws, _ = linear_regression(4, 61, memory=0.9)
    values, found = function_outputs(draws, X), ws.diagnose(draws, X)
    expected = [direct_rhat(values[:, :, point, 0]) for point in range(len(X))]
    np.testing.assert_allclose(found.functions.rhat[:, 0], expected, rtol=1e-10)
    np.testing.assert_allclose(found.log_density.rhat, direct_rhat(draws.log_density), rtol=1e-10)
    assert found.worst_rhat == max(expected) > 1.02


def test_effective_sample_size_of_autoregressive_chains():
    """ρ_t = m^t, so the integrated time is (1 + m)/(1 − m): 4 for m = 0.6."""
    draws, _ = linear_regression(8, 4000, memory=0.6)
    found = ws.diagnose(draws, X)
    # Eight chains of 4000 give the time to a few per cent.
    np.testing.assert_allclose(found.functions.bulk_ess, 8 * 4000 / 4, rtol=0.15)
    assert found.worst_rhat < 1.01
    assert found.ess_per_second == found.least_bulk_ess / 2.0 and found.seconds == 2.0


def test_chains_in_two_modes_are_seen():
    draws, _ = linear_regression(4, 100)
    moved = jax.tree.map(lambda leaf: np.concatenate([leaf[:2], leaf[2:] + 3.0]), draws.params)
    apart = ws.Draws(moved, draws.log_density, draws.model, draws.scaling, draws.example)
    assert ws.diagnose(apart, X).worst_rhat > 1.3 > 1.1 > ws.diagnose(draws, X).worst_rhat


def test_symmetric_copies_of_one_network_agree():
    """Hidden units in another order: weights differ by chain, functions do not."""
    model = ws.Model(ws.networks.MLP(hidden=(2,)), ws.likelihoods.Gaussian(0.5), ws.priors.Normal())
    numbers = wandering(1, 80, 9, memory=0.0).repeat(2, axis=0) + 4 * np.arange(9)
    draws = made_draws(model, regression_data(), numbers)
    swap = lambda leaf: leaf[..., ::-1] if leaf.shape[-1] == 2 else (leaf[..., ::-1, :] if leaf.ndim == 4 else leaf)
    swapped = {name: jax.tree.map(swap, part) for name, part in draws.params.network.items()}
    params = jax.tree.map(lambda one, two: np.concatenate([one[:1], two[1:]]), draws.params.network, swapped)
    turned = ws.Draws(
        draws.params._replace(network=params), draws.log_density, draws.model, draws.scaling, draws.example
    )
    assert max(arviz_stats.rhat(np.asarray(leaf)).max() for leaf in jax.tree.leaves(params)) > 1.5
    np.testing.assert_allclose(function_outputs(turned, X)[1], function_outputs(draws, X)[1], rtol=1e-4)
    assert ws.diagnose(turned, X).worst_rhat == pytest.approx(ws.diagnose(draws, X).worst_rhat, abs=1e-2)


def test_one_chain_has_sizes_but_no_rhat():
    draws, _ = linear_regression(1, 50)
    found = ws.diagnose(draws, X)
    assert np.isnan(found.worst_rhat) and found.least_bulk_ess > 1
    assert "worst R̂ nan" in str(found)


def test_what_never_changes_is_left_aside_and_stuck_chains_are_not():
    draws, _ = linear_regression(3, 20)
    still = jax.tree.map(lambda leaf: np.zeros_like(leaf), draws.params)
    constant = ws.Draws(still, draws.log_density, draws.model, draws.scaling, draws.example)
    assert np.isnan(ws.diagnose(constant, X).worst_rhat)
    stuck = jax.tree.map(lambda leaf: np.broadcast_to(leaf[:, :1], leaf.shape).copy(), draws.params)
    apart = ws.Draws(stuck, draws.log_density, draws.model, draws.scaling, draws.example)
    assert ws.diagnose(apart, X[:1] + 1).worst_rhat > 1e3


def test_what_diagnose_refuses():
    draws, _ = linear_regression(3, 20)
    with pytest.raises(InputError, match="at least 4 draws of each chain, got 1. Points and ensembles"):
        ws.diagnose(draws[:, :1])
    weighted = ws.Draws(
        draws.params, draws.log_density, draws.model, draws.scaling, draws.example, log_weights=draws.log_density
    )
    with pytest.raises(InputError, match="R̂ does not apply to weighted draws"):
        ws.diagnose(weighted)
    with pytest.raises(InputError, match=r"Probes must have shape \(point, 2\), got \(5,\)"):
        ws.diagnose(draws, X[:, 0])
    with pytest.raises(InputTypeError, match="must hold numbers"):
        ws.diagnose(draws, [["a", "b"]])
    broken = jax.tree.map(lambda leaf: np.where(np.arange(20)[:, None, None] == 7, np.nan, leaf), draws.params)
    with pytest.raises(InputError, match="must be finite"):
        ws.diagnose(ws.Draws(broken, draws.log_density, draws.model, draws.scaling, draws.example))


def test_summary_line():
    draws, _ = linear_regression()
    line = str(ws.diagnose(draws, X))
    assert line.startswith("function space at 5 probes: worst R̂ 1.") and "of 240 draws" in line and "a second" in line
    untimed = ws.Draws(
        draws.params, draws.log_density, draws.model, draws.scaling, draws.example, facts=Facts(method="x")
    )
    assert ws.diagnose(untimed, X).ess_per_second is None and "a second" not in str(ws.diagnose(untimed, X))


def direct_log_densities(draws: ws.Draws, data: ws.Dataset) -> np.ndarray:
    """log p(y_i | θ_s) of (chain, draw, point), from SciPy: N(y | mean, (0.5 y_scale)²)."""
    scaling = data.train.scaling
    mean = function_outputs(draws, data.test.x).astype(np.float64)[..., 0]
    return stats.norm.logpdf(np.asarray(data.test.y), mean, 0.5 * float(scaling.y_scale))


def test_running_lppd_is_the_direct_sum():
    draws, data = linear_regression(3, 20)
    found, each = ws.running_lppd(draws, data.test), direct_log_densities(draws, data)
    assert found.by_chain.shape == (3, 20) and found.pooled.shape == (20,) and found.num_points == len(data.test)
    for k in (1, 2, 13, 20):
        averages = special.logsumexp(each[:, :k], axis=1) - np.log(k)
        np.testing.assert_allclose(found.by_chain[:, k - 1], averages.sum(axis=1), rtol=1e-4)
        pooled = special.logsumexp(each[:, :k], axis=(0, 1)) - np.log(3 * k)
        np.testing.assert_allclose(found.pooled[k - 1], pooled.sum(), rtol=1e-4)


def test_running_lppd_ends_at_the_predictive_density():
    for draws, data in (linear_regression(3, 20), linear_classification(3, 20)):
        expected = np.asarray(ws.predict(draws, data.test.x).log_density(data.test.y)).sum()
        np.testing.assert_allclose(ws.running_lppd(draws, data.test).pooled[-1], expected, rtol=1e-4)


def test_running_lppd_weighs_weighted_draws():
    draws, data = linear_regression(3, 20)
    log_weights = np.random.default_rng(0).normal(size=(3, 20)).astype(np.float32) + 700
    weighted = ws.Draws(
        draws.params, draws.log_density, draws.model, draws.scaling, draws.example, log_weights=log_weights
    )
    expected = np.asarray(ws.predict(weighted, data.test.x).log_density(data.test.y)).sum()
    found = ws.running_lppd(weighted, data.test)
    np.testing.assert_allclose(found.pooled[-1], expected, rtol=1e-4)
    each = direct_log_densities(draws, data)[1, :5]
    weights = special.softmax(np.asarray(log_weights, np.float64)[1, :5])
    np.testing.assert_allclose(
        found.by_chain[1, 4], special.logsumexp(each, axis=0, b=weights[:, None]).sum(), rtol=1e-4
    )


def test_running_lppd_of_one_draw_and_what_it_refuses():
    draws, data = linear_regression(3, 20)
    one = ws.running_lppd(draws[:1, :1], data.test)
    assert one.by_chain.shape == (1, 1) and one.by_chain[0, 0] == pytest.approx(one.pooled[0])
    with pytest.raises(InputError, match="Rows of `batch` must have shapes"):
        ws.running_lppd(draws, ws.Batch(np.ones((3, 5)), np.ones(3)))
