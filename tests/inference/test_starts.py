"""Where chains start, and second chances for those that are lost."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.known import assert_moments, linear

import weightscape as ws
from weightscape.core import InputError, InputTypeError, Silent
from weightscape.inference.start import start_positions

TRY = ws.HMC(num_chains=4, num_draws=1, num_warmup=0, num_leapfrog=1, step_size=1e-6)


def first_weights(init, posterior=None):
    """Where chains are after one tiny step from their start."""
    draws = TRY.run(jax.random.key(0), posterior or linear().posterior, init=init, keep_all=True)
    return np.asarray(draws.params.network["layer0"]["weight"])[:, 0, :, 0]


def test_chains_start_at_the_mode_or_at_members_of_an_ensemble():
    mode = linear().mean
    np.testing.assert_allclose(first_weights(ws.MAP(num_steps=1500)), np.tile(mode, (4, 1)), atol=1e-3)
    members = ws.DeepEnsemble(num_members=4, num_steps=3).run(jax.random.key(1), linear().posterior)
    starts = first_weights(members)
    np.testing.assert_allclose(starts, np.asarray(members.params.network["layer0"]["weight"])[:, 0, :, 0], atol=1e-4)
    spread = first_weights(ws.DeepEnsemble(num_members=4, num_steps=3))
    assert len(np.unique(spread[:, 0])) == 4


def test_starts_from_the_prior_have_its_moments():
    posterior = linear(prior_scale=3.0).posterior
    many = dataclasses.replace(TRY, num_chains=4000)
    draws = many.run(jax.random.key(2), posterior, init=ws.FromPrior(), keep_all=True)
    weights = np.asarray(draws.params.network["layer0"]["weight"], np.float64)[:, 0, :, 0]
    # 5 standard errors of a mean of 4,000 draws, and of their variance, whose standard deviation is √2 · 9.
    assert np.all(np.abs(weights.mean(axis=0)) < 5 * 3 / np.sqrt(4000))
    covariance = np.cov(weights.T)
    assert np.all(np.abs(covariance - 9 * np.eye(3)) < 5 * np.sqrt(2) * 9 / np.sqrt(4000))


def test_anything_else_is_refused(unchecked):
    with pytest.raises(InputTypeError, match=r"`init` must say where chains start, got str. Pass Draws, a method"):
        TRY.run(jax.random.key(0), linear().posterior, init="prior")


@pytest.fixture(scope="module")
def trapped():
    """Four chains on a normal target, one of them on an island among non-finite densities, where it cannot move."""
    island = lambda w: jnp.where(jnp.abs(w - 50.0) < 1e-6, w, jnp.where(w > 6, jnp.nan, w))
    network = ws.networks.Function(lambda key, x: jnp.ones((1, 1)), lambda params, x: x @ island(params))
    model = ws.Model(network, ws.likelihoods.Gaussian(1.0), ws.priors.Normal(10.0))
    posterior = model.condition(ws.Batch(np.ones((3, 1)), np.ones(3)))
    point = ws.MAP(num_steps=1).run(jax.random.key(0), posterior)
    start = point.merge([point, point, point])
    weights = np.array(start.params.network)
    weights[2] = 50.0
    return posterior, dataclasses.replace(start, params=start.params._replace(network=weights))


METHOD = ws.HMC(num_chains=4, num_draws=1500, num_warmup=200, num_leapfrog=5, step_size=0.2)


@pytest.mark.parametrize("restart", [ws.Nearby(), pytest.param(ws.Afresh(), marks=pytest.mark.slow)])
def test_lost_chains_get_a_second_chance(trapped, restart):
    posterior, start = trapped
    draws = METHOD.run(jax.random.key(1), posterior, init=start, restart=restart, strict=True)
    assert draws.num_chains == 4 and not draws.health.left_out
    # Three observations of 1 with unit noise and prior N(0, 10²): precision 3.01, mean 3/3.01.
    assert_moments(np.asarray(draws.params.network, np.float64)[..., 0], np.array([3 / 3.01]), np.array([[1 / 3.01]]))


def test_strict_raises_and_keep_all_keeps(trapped):
    posterior, start = trapped
    short = dataclasses.replace(METHOD, num_draws=50, num_warmup=0)
    draws = short.run(jax.random.key(1), posterior, init=start)
    assert draws.num_chains == 3 and draws.health.left_out == ((2, "it did not move"),)
    with pytest.raises(InputError, match="chain 2"):
        short.run(jax.random.key(1), posterior, init=start, strict=True)
    kept = short.run(jax.random.key(1), posterior, init=start, keep_all=True)
    assert kept.num_chains == 4 and [chain for chain, _ in kept.health.flagged] == [2]
    with pytest.raises(InputError, match="must not both be set"):
        short.run(jax.random.key(1), posterior, strict=True, keep_all=True)


def test_stored_runs_keep_every_chain_and_load_the_healthy_ones(trapped, tmp_path):
    posterior, start = trapped
    short = dataclasses.replace(METHOD, num_draws=50, num_warmup=0)
    with pytest.raises(InputError, match="chain 2"):
        short.run(jax.random.key(1), posterior, init=start, strict=True, store=tmp_path)
    loaded = ws.Draws.load(tmp_path, network=posterior.model.network)
    assert loaded.num_chains == 4  # the run is all there; nothing was lost by raising
    usual = short.run(jax.random.key(1), posterior, init=start, store=tmp_path, resume=True)
    assert usual.num_chains == 3
    # A complete run is examined as asked for now, not as it was before.
    again = {"init": start, "store": tmp_path, "resume": True}
    with pytest.raises(InputError, match="chain 2"):
        short.run(jax.random.key(1), posterior, strict=True, **again)
    assert short.run(jax.random.key(1), posterior, keep_all=True, **again).num_chains == 4
    assert short.run(jax.random.key(1), posterior, **again).num_chains == 3


def test_more_chains_than_starts_take_different_draws_and_weights_are_heeded():
    model = ws.Model(ws.networks.MLP(hidden=()), ws.likelihoods.Gaussian(scale=1.0), ws.priors.Normal(scale=1.0))
    posterior = model.condition(ws.Batch(np.ones((3, 1), np.float32), np.ones(3, np.float32)))
    draws = ws.flow.prior_draws(jax.random.key(0), posterior, 12)
    starts = lambda given: start_positions(jax.random.key(1), posterior, 4, given, Silent()).network["layer0"]["bias"]
    known = np.asarray(draws.params.network["layer0"]["bias"])[0]
    np.testing.assert_array_equal(starts(draws), known[[11, 8, 5, 2]])
    log_weights = np.where(np.isin(np.arange(12), (3, 7)), 0.0, -np.inf)[None]
    np.testing.assert_array_equal(starts(dataclasses.replace(draws, log_weights=log_weights)), known[[3, 3, 7, 7]])
