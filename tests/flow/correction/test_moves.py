"""Moved draws: chains from an approximation arrive at the posterior, and say so only when they have."""

import dataclasses

import jax
import numpy as np
import pytest
from tests.flow.correction.problems import gaussian_near, two_gaussians, valleys, weights_of
from tests.known import linear

import weightscape as ws
from weightscape.core import Deadline, InputError, Silent
from weightscape.flow.correction import moved, weighted
from weightscape.flow.correction.drift import Drift, drift_at_the_end, drift_between_halves, too_many_dead

KERNEL = ws.HMC(num_warmup=8, num_leapfrog=4)


def run(draws, **settings):
    return moved(jax.random.key(1), linear().posterior, draws, progress=Silent(), **{"kernel": KERNEL, **settings})


@pytest.fixture(scope="module")
def arrived():
    return run(gaussian_near(linear(), shift=0.7, stretch=1.3).sample(jax.random.key(0), 3000), num_transitions=12)


def test_ends_have_the_moments_of_the_posterior(arrived):
    """Independent draws: the error of the mean is √(Σ/n), of a covariance √((Σ_ii Σ_jj + Σ_ij²)/n)."""
    problem, values = linear(), weights_of(arrived.draws)[0]
    variance = np.diag(problem.covariance)
    assert np.all(np.abs(values.mean(axis=0) - problem.mean) < 5 * np.sqrt(variance / 3000))
    found = (values - problem.mean).T @ (values - problem.mean) / 3000
    error = np.sqrt((np.outer(variance, variance) + problem.covariance**2) / 3000)
    assert np.all(np.abs(found - problem.covariance) < 5 * error)


def test_arrival_is_noticed(arrived):
    assert arrived.has_converged and arrived.num_dead == 0
    assert len(arrived.at_the_end.z) == 1 + len(linear().posterior.example.x)
    assert np.all(np.isfinite(arrived.at_the_end.z)) and np.any(arrived.at_the_end.z != 0)


def test_tuning_meets_the_wanted_acceptance(arrived):
    """Its slope over log ε is about −0.4, and eight steps leave little of the way from the first guess."""
    assert arrived.acceptance.shape == (12,)
    assert abs(arrived.acceptance.mean() - 0.8) < 0.1


def test_draws_know_their_density_and_their_cost(arrived):
    draws = arrived.draws
    assert draws.log_proposal is None and draws.log_weights is None and draws.log_density.shape == (1, 3000)
    again = jax.vmap(jax.vmap(linear().posterior.log_density))(draws[:, :20].positions())
    np.testing.assert_allclose(draws[:, :20].log_density, again, rtol=1e-4)
    # Trajectories of 4 steps on average, jittered by a half, in 8 + 12 transitions, and one gradient at the start.
    assert 3000 * (1 + 2 * 20) <= draws.facts["gradients"] <= 3000 * (1 + 6 * 20)


def test_chains_on_their_way_are_found_out():
    far = gaussian_near(linear(), shift=8.0).sample(jax.random.key(0), 200)
    result = run(far, num_transitions=1, kernel=ws.HMC(num_warmup=0, num_leapfrog=2, step_size=0.1))
    assert not result.has_converged
    assert result.at_the_end.change[0] > 0 and abs(result.at_the_end.z[0]) > 5


def test_dead_chains_are_counted():
    """At w = 30 the slope of (w² − 1)² / 2σ² is 10⁷ and every trajectory diverges; around 1 the others move."""
    posterior = valleys().posterior
    near = two_gaussians(posterior).sample(jax.random.key(0), 200)
    values = np.array(near.params.network["w"])
    values[0, :5] = 30.0
    lost = dataclasses.replace(near, params=jax.tree.map(lambda leaf: values, near.params))
    kernel = ws.HMC(num_warmup=4, num_leapfrog=4, step_size=0.03, mass=ws.UnitMass())
    result, whole = (
        moved(jax.random.key(1), posterior, draws, kernel=kernel, progress=Silent()) for draws in (lost, near)
    )
    assert whole.num_dead == 0 and whole.has_converged
    assert np.flatnonzero(result.is_dead).tolist() == [0, 1, 2, 3, 4]
    assert result.num_dead == 5 and not result.has_converged
    assert result.at_the_end.is_still  # which is why they are counted
    assert len(result.draws[:, ~result.is_dead]) == 195


def test_time_that_is_up_ends_the_moves():
    draws = gaussian_near(linear()).sample(jax.random.key(0), 3000)
    result = moved(jax.random.key(1), linear().posterior, draws, kernel=KERNEL, progress=Deadline(0.0, Silent()))
    assert len(result.acceptance) == result.draws.facts["num_transitions"] == 1


def test_drift_of_known_changes():
    """z of d = 1 ± 1 over n chains is √n; the middle of an odd trace and its halves are where they should be."""
    changes = np.tile([0.0, 2.0], 50)
    trace = np.stack([np.zeros(100), np.zeros(100), changes])[:, :, None]
    expected = 1 / (changes.std(ddof=1) / 10)
    assert drift_at_the_end(trace).z == pytest.approx([expected])
    assert drift_between_halves(trace).z == pytest.approx([expected])
    assert not drift_at_the_end(trace).is_still
    late = np.stack([changes, changes, np.zeros(100), np.zeros(100), np.zeros(100)])[:, :, None]
    assert drift_at_the_end(late).change.tolist() == [0.0]
    assert drift_between_halves(late).change.tolist() == [-1.0]
    assert not Drift(np.array([np.nan]), np.array([1.0]), np.array([1.0])).is_still
    assert Drift(np.array([3.2]), np.array([1.0]), np.array([1.0])).is_still  # 3.29 is the limit for one quantity
    assert not Drift(np.array([3.4]), np.array([1.0]), np.array([1.0])).is_still
    assert Drift(np.array([3.4, 0.0]), np.array([1.0, 0.0]), np.ones(2)).is_still  # 3.48 for two


def test_stillness_holds_where_nothing_drifts():
    """Of 2,000 ensembles without drift 2 are expected to fail; more than 13 have a probability below 10⁻⁶."""
    traces = np.random.default_rng(0).normal(size=(2000, 3, 100, 4))
    assert sum(not drift_at_the_end(trace).is_still for trace in traces) <= 13


def test_dead_chains_by_chance():
    """Of 1000 chains with acceptance 0.8, 200 stay after one transition on average and 0.3 after five."""
    assert not too_many_dead(200, 1000, np.array([0.8])) and too_many_dead(300, 1000, np.array([0.8]))
    assert not too_many_dead(0, 1000, np.full(5, 0.8)) and too_many_dead(6, 1000, np.full(5, 0.8))
    assert too_many_dead(1000, 1000, np.zeros(5))


def test_starts_that_cannot_be_are_refused():
    draws = gaussian_near(linear()).sample(jax.random.key(0), 200)
    with pytest.raises(InputError, match="must weigh the same"):
        run(weighted(draws))
    with pytest.raises(InputError, match="at least 8"):
        run(draws[:, :5])
    broken = jax.tree.map(lambda leaf: np.full_like(leaf, np.inf), draws.params)
    with pytest.raises(InputError, match="finite where chains start"):
        run(dataclasses.replace(draws, params=broken))
