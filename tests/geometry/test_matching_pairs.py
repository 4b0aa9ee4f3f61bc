"""The parts of a matching: assignments, and the best signs and scales of a pair."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from weightscape.geometry.assignment import assign, balanced
from weightscape.geometry.multipliers import best_multiplier
from weightscape.geometry.sinkhorn import sinkhorn

key = jax.random.key


def best_total(gains):
    orders = itertools.permutations(range(len(gains)))
    return max(sum(gains[i, j] for i, j in enumerate(order)) for order in orders)


def total(gains, order):
    return gains[np.arange(len(order)), order].sum()


def test_assignments_are_the_best_of_all_permutations():
    gains = np.random.default_rng(0).normal(size=(20, 5, 5))
    for one, order in zip(gains, assign(gains), strict=True):
        assert sorted(order) == list(range(5))
        assert np.isclose(total(one, order), best_total(one), rtol=1e-14)


def test_assignments_that_nobody_wants_are_left_at_the_identity():
    gains = np.random.default_rng(0).normal(size=(3, 6, 6))
    orders = assign(gains, np.array([True, False, True]))
    assert np.array_equal(orders[1], np.arange(6)) and np.array_equal(orders[[0, 2]], assign(gains[[0, 2]]))
    assert np.array_equal(assign(gains, np.zeros(3, bool)), np.tile(np.arange(6), (3, 1)))


def test_a_balanced_matrix_has_the_same_best_permutation(x64):
    for gains in np.random.default_rng(1).normal(size=(20, 5, 5)):
        made = np.asarray(balanced(jnp.asarray(gains)))
        assert np.isclose(total(gains, assign(made[None])[0]), best_total(gains), rtol=1e-12)
        # Prices alone were taken off: what is left over has rank one plus one.
        prices = gains - made
        np.testing.assert_allclose(prices - prices[:1] - prices[:, :1] + prices[0, 0], 0, atol=1e-13)
        assert made.max() <= 0


def test_a_balanced_matrix_of_equal_entries_stays_finite():
    assert np.array_equal(balanced(jnp.ones((3, 3))), np.zeros((3, 3)))
    assert np.array_equal(balanced(jnp.ones((1, 1))), np.zeros((1, 1)))


def height(kinds, norms, products, signs, log_scales):
    f = [np.prod(np.array(signs) ** np.array(flips)) * np.exp(np.dot(e, log_scales)) for e, flips in kinds]
    return np.sum(norms * (np.array(f) ** 2 - 1) - 2 * products * np.array(f))


def test_the_best_multiplier_beats_a_grid(x64):
    """Exponents 1, −1 and −2, with and without a sign: no pattern and no scale on a fine grid is lower."""
    kinds = (((1,), (1,)), ((-1,), (1,)), ((-2,), (0,)))
    generator = np.random.default_rng(2)
    norms, products = generator.exponential(size=(50, 3)) ** 3, generator.normal(size=(50, 3))
    best = jax.jit(jax.vmap(lambda p, b: best_multiplier(kinds, p, b)))(norms, products)
    u = np.linspace(-5, 5, 2001)
    f = np.exp(np.stack([u, -u, -2 * u]))
    for i in range(50):
        flips = np.array([[1, 1, 1], [-1, -1, 1]])
        on_grid = [np.sum(norms[i, :, None] * (f**2 - 1) - 2 * (products[i] * s)[:, None] * f, axis=0) for s in flips]
        assert best.cost[i] <= np.min(on_grid) + 1e-12
        assert np.isclose(best.cost[i], height(kinds, norms[i], products[i], best.signs[i], best.log_scales[i]))
        # The other way round: a spacing of 0.005 misses at most 0.0025² / 2 times the curvature there.
        nearest = np.argmin(np.min(on_grid, axis=0))
        curvature = np.sum(
            4 * np.array([1, 1, 4]) * (norms[i] * f[:, nearest] ** 2 + np.abs(products[i]) * f[:, nearest])
        )
        assert best.cost[i] >= np.min(on_grid) - 1e-5 * curvature
        # Off the bound of 10 / 2 the slope is zero to rounding, which the height alone cannot tell.
        e, flip = np.array([1, -1, -2]), np.array([1, 1, 0])
        there = np.exp(e * best.log_scales[i]) * np.asarray(best.signs[i]) ** flip
        slope = 2 * e * there * (norms[i] * there - products[i])
        size = np.sum(2 * np.abs(e * there) * (norms[i] * np.abs(there) + np.abs(products[i])))
        assert abs(slope.sum()) < 1e-12 * size or abs(best.log_scales[i, 0]) == 5


def test_two_scales_are_found_one_after_the_other(x64):
    """With R = f P the lowest h is −Σ_c p_c (1 + f_c²), at the planted scales."""
    kinds = (((1, 0), ()), ((0, 1), ()), ((1, -1), ()))
    generator = np.random.default_rng(3)
    norms, wanted = generator.exponential(size=(20, 3)) + 0.1, generator.normal(size=(20, 2))
    f = np.exp(wanted @ np.array([[1, 0, 1], [0, 1, -1]]))
    best = jax.jit(jax.vmap(lambda p, b: best_multiplier(kinds, p, b)))(norms, norms * f)
    lowest = np.sum(-norms * (1 + f**2), axis=1)
    started = -2 * np.sum(norms * f, axis=1)
    assert np.all(best.cost >= lowest - 1e-9) and np.all(best.cost <= started)
    # Eight rounds of two coordinates that the third kind couples: nearly all of the way is gone.
    assert np.all(best.cost - lowest <= 0.05 * (started - lowest))
    assert np.median(best.cost - lowest) < 1e-6


def test_a_dead_unit_is_left_alone(x64):
    best = best_multiplier((((1,), (1,)), ((-1,), (1,))), jnp.zeros(2), jnp.zeros(2))
    assert best.cost == 0 and best.signs == 1 and best.log_scales == 0


def test_sinkhorn_is_doubly_stochastic_and_scales_rows_and_columns(x64):
    log_weights = jax.random.normal(key(0), (5, 5))
    plan = np.asarray(sinkhorn(log_weights))
    np.testing.assert_allclose(plan.sum(0), 1, rtol=1e-12)
    np.testing.assert_allclose(plan.sum(1), 1, rtol=1e-5)
    ratio = np.log(plan) - np.asarray(log_weights)
    np.testing.assert_allclose(ratio - ratio[:1] - ratio[:, :1] + ratio[0, 0], 0, atol=1e-12)
