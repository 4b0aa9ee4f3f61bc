"""Jumps: chains visit every mode in its share, and accept as often as theory says."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.flow.correction.problems import gaussian_near, two_gaussians, valleys, weights_of
from tests.known import assert_moments, linear, monte_carlo_error

import weightscape as ws
from weightscape.core import InputError, InputTypeError, Silent
from weightscape.core.config import decode
from weightscape.flow.correction import JumpHMC
from weightscape.flow.correction.jumps import Jumping
from weightscape.inference import Blocks, Full, Gaussian, UnitMass
from weightscape.inference.mcmc.length import Steps
from weightscape.inference.mcmc.transition import Hamiltonian
from weightscape.inference.mcmc.warmup import Adaptive


def run(method, seed, posterior, **around):
    return method.run(jax.random.key(seed), posterior, progress=Silent(), **around)


def positions(draws):
    return np.asarray(draws.params.network["w"], np.float64)[..., None]


def test_modes_get_their_shares():
    """The approximation gives both modes 1/2; without jumps chains stay where they start."""
    problem = valleys()
    method = JumpHMC(num_chains=8, num_draws=2000, num_warmup=200, num_leapfrog=4, jump_every=2)
    draws = run(method, 0, problem.posterior, init=two_gaussians(problem.posterior))
    assert 0.55 < problem.share < 0.75
    assert_moments(positions(draws), np.array([problem.mean]), np.array([[problem.variance]]))
    right = (positions(draws)[..., 0] > 0).astype(float)
    error = float(monte_carlo_error(right))
    assert abs(right.mean() - problem.share) < 5 * error and error < 0.02
    assert abs(right.mean() - 0.5) > 5 * error
    crossed = right[:, 1:] != right[:, :-1]
    jumped = np.asarray(draws.info["has_jumped"])[:, 1:]
    assert np.all(jumped[crossed]) and crossed.sum() > 100


@pytest.fixture(scope="module")
def jumping():
    method = JumpHMC(num_chains=8, num_draws=1800, num_warmup=202, num_leapfrog=4, jump_every=3)
    return run(method, 1, linear().posterior, init=gaussian_near(linear(), stretch=1.5))


DUE = (np.arange(202, 2002) + 1) % 3 == 0


def test_jumps_are_accepted_as_often_as_theory_says(jumping):
    """For q = N(m, τ² Σ) in d dimensions ∫∫ min(p q', p' q) = 2 P(τ² χ²_d < χ²_d') = 2 F_{d,d}(1/τ²)."""
    expected = 2 * stats.f(3, 3).cdf(1 / 1.5**2)
    for name in ("jump_acceptance", "has_jumped"):
        noted = np.asarray(jumping.info[name], np.float64)[:, DUE]
        error = float(monte_carlo_error(noted))
        assert abs(noted.mean() - expected) < 5 * error and error < 0.012


def test_jumps_leave_the_posterior_as_it_is(jumping):
    assert_moments(weights_of(jumping), linear().mean, linear().covariance)
    again = jax.vmap(jax.vmap(linear().posterior.log_density))(jumping[:, :30].positions())
    np.testing.assert_allclose(jumping[:, :30].log_density, again, rtol=1e-4)


def test_jumps_are_due_at_every_third_transition(jumping):
    """Indices count on from warm-up, and between jumps the note stays."""
    assert not np.asarray(jumping.info["has_jumped"])[:, ~DUE].any()
    noted = np.asarray(jumping.info["jump_acceptance"])
    np.testing.assert_array_equal(noted[:, 1:][:, ~DUE[1:]], noted[:, :-1][:, ~DUE[1:]])


def test_log_q_is_computed_at_jumps_alone():
    """Vectorised over chains that share the index, the jump is still a branch, and log q stands in it only."""
    problem, evaluated = linear(), []

    class Watched(Gaussian):
        def log_density(self, position):
            jax.debug.callback(evaluated.append, 1)
            return Gaussian.log_density(self, position)

    known = gaussian_near(problem)
    fields = {field.name: getattr(known, field.name) for field in dataclasses.fields(known)}
    transition = Hamiltonian(problem.posterior, Steps(jnp.asarray(2), jnp.asarray(0.0)))
    numbers = (jnp.asarray(0.05), jnp.asarray(0.8), jnp.asarray(0))
    sampler = Jumping(Adaptive(transition, UnitMass(), *numbers), Watched(**fields), jnp.asarray(4))
    keys = jax.random.split(jax.random.key(0), 2)
    state = jax.jit(jax.vmap(lambda key: sampler.init(known.sample_position(key))))(keys)
    step = eqx.filter_jit(lambda index: jax.vmap(sampler.move, (0, 0, None))(keys, state, index))
    counts = []
    for index in range(8):
        jax.block_until_ready(step(jnp.asarray(index)))
        jax.effects_barrier()
        counts.append(len(evaluated))
    # The proposals of both chains at once, and their states, at the fourth and the eighth transition.
    assert counts == [0, 0, 0, 2, 2, 2, 2, 4]


def test_settings_are_kept_and_runs_resume(tmp_path):
    problem, method = linear(), JumpHMC(num_chains=2, num_draws=20, num_warmup=10, num_leapfrog=2)
    start = gaussian_near(problem)
    whole = run(method, 3, problem.posterior, init=start)
    assert decode(whole.facts["settings"]).jump_every == 5
    run(dataclasses.replace(method, num_draws=8), 3, problem.posterior, init=start, store=tmp_path / "run")
    rest = run(method, 3, problem.posterior, init=start, store=tmp_path / "run", resume=True)
    np.testing.assert_array_equal(weights_of(rest), weights_of(whole))


def test_other_starts_are_refused(unchecked):
    posterior, method = linear().posterior, JumpHMC(num_chains=2)
    with pytest.raises(InputTypeError, match="`init` of JumpHMC must be an approximation, got NoneType"):
        run(method, 0, posterior)
    with pytest.raises(InputTypeError, match="got MAP"):
        run(method, 0, posterior, init=ws.MAP())
    part = Blocks((Full.of_covariance(jnp.eye(2)),), (jnp.arange(2),), 3)
    with pytest.raises(InputError, match="density over all weights, got one that holds some fixed"):
        run(method, 0, posterior, init=dataclasses.replace(gaussian_near(linear()), covariance=part))
    with pytest.raises(InputError, match="jump_every"):
        JumpHMC(jump_every=0)
