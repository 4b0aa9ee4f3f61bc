"""HMC against closed forms, quadrature, itself, and the compiler."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh
from tests.known import assert_moments, inferred_noise, linear

import weightscape as ws
from weightscape.core import InputError, InputTypeError, Silent, loop
from weightscape.core.devices import CHAIN_AXIS
from weightscape.inference.mcmc.length import MOST_LEAPFROG, Duration, Steps, van_der_corput
from weightscape.inference.mcmc.warmup import window

SHORT = ws.HMC(num_chains=4, num_draws=30, num_warmup=20, num_leapfrog=5)


def test_linear_regression_has_the_closed_form_moments():
    problem = linear()
    draws = ws.HMC(num_chains=8, num_draws=3000, num_warmup=400, num_leapfrog=6).run(
        jax.random.key(0), problem.posterior
    )
    weights = np.asarray(draws.params.network["layer0"]["weight"], np.float64)[..., 0]
    assert_moments(weights, problem.mean, problem.covariance)


def test_inferred_noise_has_the_moments_of_quadrature():
    problem = inferred_noise()
    draws = ws.HMC(num_chains=8, num_draws=4000, num_warmup=400, num_leapfrog=6).run(
        jax.random.key(1), problem.posterior
    )
    weight = np.asarray(draws.params.network["layer0"]["weight"], np.float64)[..., 0, 0]
    values = np.stack([weight, np.asarray(draws.params.likelihood["scale"], np.float64)], axis=-1)
    assert_moments(values, problem.mean, problem.covariance)


def test_log_density_is_the_target_at_the_draws():
    posterior = inferred_noise().posterior
    draws = SHORT.run(jax.random.key(2), posterior)
    again = jax.vmap(jax.vmap(posterior.log_density))(draws.positions())
    np.testing.assert_allclose(draws.log_density, again, rtol=1e-5)


@pytest.mark.slow
def test_acceptance_reaches_its_target():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(60, 40)) * np.geomspace(0.1, 3.0, 40)
    model = ws.Model(ws.networks.MLP(hidden=()), ws.likelihoods.Gaussian(0.5), ws.priors.Normal(1.0))
    posterior = model.condition(ws.Batch(x, x[:, 0]))
    reached = []
    for target in (0.65, 0.9):
        method = ws.HMC(num_chains=4, num_draws=300, num_warmup=1000, num_leapfrog=8, target_acceptance=target)
        reached.append(float(np.mean(method.run(jax.random.key(3), posterior).info["acceptance"])))
    # Dual averaging over the last 100 transitions leaves 0.25 / √100 for a chain, and half of that for four.
    np.testing.assert_allclose(reached, [0.65, 0.9], atol=0.06)


@pytest.mark.slow
def test_mass_adaptation_learns_the_variances():
    problem = linear()
    draws = ws.HMC(num_chains=2, num_draws=2, num_warmup=2000, num_leapfrog=6).run(jax.random.key(4), problem.posterior)
    # With unit mass a step must fit the narrowest direction; with learned mass it is of order one.
    narrow = np.sqrt(np.linalg.eigvalsh(problem.covariance)[0])
    assert np.all(draws.info["step_size"] > 5 * narrow)


def test_same_seed_same_bits_and_other_seed_other_bits():
    posterior = linear().posterior
    one, same, other = (SHORT.run(jax.random.key(seed), posterior) for seed in (7, 7, 8))
    assert np.array_equal(one.log_density, same.log_density)
    assert not np.array_equal(one.log_density, other.log_density)


def test_a_chain_does_not_depend_on_the_number_of_devices(monkeypatch):
    posterior = linear().posterior
    over_two = SHORT.run(jax.random.key(9), posterior)
    monkeypatch.setattr(
        loop, "chain_mesh", lambda num_chains, num_shards=1: Mesh(np.array(jax.devices()[:1]), (CHAIN_AXIS,))
    )
    over_one = SHORT.run(jax.random.key(9), posterior)
    # Vectorising over four chains instead of two reorders sums; over a short run that grows to 4e-3,
    # where another chain would differ by one.
    np.testing.assert_allclose(over_two.log_density, over_one.log_density, rtol=1e-2)


def test_no_number_recompiles():
    traces = []

    def apply(params, x):
        traces.append(None)
        return x @ params

    network = ws.networks.Function(lambda key, x: jnp.zeros((x.shape[1], 1)), apply)

    def run(seed, noise, scale, method):
        model = ws.Model(network, ws.likelihoods.Gaussian(noise), ws.priors.Normal(scale))
        batch = ws.Batch(np.random.default_rng(seed).normal(size=(20, 3)), np.linspace(-1, 1, 20))
        method.run(jax.random.key(seed), model.condition(batch), progress=Silent())

    run(0, 0.3, 1.0, SHORT)
    compiled = len(traces)
    bindings = len(traces)
    ws.Model(network, ws.likelihoods.Gaussian(1.0), ws.priors.Normal(1.0)).condition(
        ws.Batch(np.ones((20, 3)), np.arange(20.0))
    )
    one_binding = len(traces) - bindings  # `condition` traces the network's output shape
    changed = dataclasses.replace(
        SHORT, step_size=0.01, num_draws=27, num_warmup=18, num_leapfrog=7, jitter=0.1, target_acceptance=0.9, thin=2
    )
    run(1, 0.7, 2.0, changed)
    shapes_only = len(traces) - compiled - 2 * one_binding
    # What is left is `eval_shape` for the buffer's size: two phases, no compilation.
    assert compiled > 8
    assert shapes_only <= 2 * 3


def test_stuck_chains_are_left_out_and_named():
    # A point of finite density among non-finite ones: whatever a trajectory proposes from it is rejected.
    island = lambda w: jnp.where(jnp.abs(w - 50.0) < 1e-6, w, jnp.where(w > 40, jnp.nan, w))
    network = ws.networks.Function(lambda key, x: jnp.ones((1, 1)), lambda params, x: x @ island(params))
    model = ws.Model(network, ws.likelihoods.Gaussian(1.0), ws.priors.Normal(10.0))
    posterior = model.condition(ws.Batch(np.ones((3, 1)), np.ones(3)))
    point = ws.MAP(num_steps=1).run(jax.random.key(0), posterior)
    start = point.merge([point, point, point])
    weights = np.array(start.params.network)
    weights[2] = 50.0
    start = dataclasses.replace(start, params=start.params._replace(network=weights))
    method = ws.HMC(num_chains=4, num_draws=20, num_warmup=0, num_leapfrog=5, step_size=1.0)
    draws = method.run(jax.random.key(1), posterior, init=start)
    assert draws.health.left_out == ((2, "it did not move"),)
    assert draws.num_chains == 3
    assert not np.any(np.asarray(draws.params.network) == 50.0)
    with pytest.raises(InputError, match="At least one chain must move"):
        dataclasses.replace(method, num_chains=1).run(jax.random.key(1), posterior, init=start[2])


def test_bounded_time_ends_early_with_whole_draws():
    class Expired(Silent):
        def seconds_left(self):
            return 0.0

    method = ws.HMC(num_chains=2, num_draws=100_000, num_warmup=100_000, num_leapfrog=2, step_size=0.01)
    start = ws.MAP(num_steps=500).run(jax.random.key(0), linear().posterior)
    draws = method.run(jax.random.key(0), linear().posterior, init=start, progress=Expired())
    assert 0 < draws.num_draws < 100_000
    assert np.all(np.isfinite(draws.log_density))


def test_bad_settings_and_starts_are_refused(unchecked):
    with pytest.raises(InputError, match="`num_draws` of HMC must be at least 1, got 0"):
        ws.HMC(num_draws=0)
    with pytest.raises(InputError, match="`step_size` of HMC must be positive"):
        ws.HMC(step_size=-0.1)
    with pytest.raises(InputError, match="`trajectory` of HMC must be positive"):
        ws.HMC(trajectory=0.0)
    with pytest.raises(InputError, match="`num_kept` of LowRankMass must be larger than its rank, got 10"):
        ws.LowRankMass(rank=10, num_kept=10)
    with pytest.raises(InputTypeError, match="`mass` of NUTS must be a Mass, got 'diagonal'"):
        ws.NUTS(mass="diagonal")
    with pytest.raises(InputError, match="`target_acceptance` of MALA must lie strictly between 0 and 1"):
        ws.MALA(target_acceptance=1.0)
    with pytest.raises(InputError, match="`energy_variance` of MCLMC must be positive"):
        ws.MCLMC(energy_variance=0.0)
    with pytest.raises(TypeError, match=r"jax.random.key\(seed\)"):
        SHORT.run(0, linear().posterior)
    network = ws.networks.Function(lambda key, x: jnp.full((1, 1), jnp.inf), lambda params, x: x @ params)
    model = ws.Model(network, ws.likelihoods.Gaussian(1.0), ws.priors.Normal(1.0))
    with pytest.raises(InputError, match="must be finite where chains start"):
        SHORT.run(jax.random.key(0), model.condition(ws.Batch(np.ones((2, 1)), np.ones(2))))


def test_windows_double_and_fill_the_middle():
    steps = np.arange(1000)
    inside, closes = jax.vmap(window, (0, None))(jnp.asarray(steps), jnp.asarray(1000))
    assert steps[np.asarray(inside)].tolist() == list(range(150, 900))
    # 25, 50, 100, and 200 stretched to the end, where 400 more would not fit.
    assert (steps[np.asarray(closes)] + 1).tolist() == [175, 225, 325, 900]


def test_trajectories_spread_evenly_around_their_mean():
    lengths = jax.vmap(Steps(jnp.asarray(32), jnp.asarray(0.5)).num_leapfrog, (None, 0))(jnp.ones(()), jnp.arange(1023))
    assert lengths.min() == 16 and lengths.max() == 48
    assert abs(float(lengths.mean()) - 32) < 0.1
    exact = jax.vmap(Steps(jnp.asarray(32), jnp.asarray(0.0)).num_leapfrog, (None, 0))(jnp.ones(()), jnp.arange(50))
    assert np.all(np.asarray(exact) == 32)
    first = [float(van_der_corput(jnp.asarray(i))) for i in range(5)]
    assert first == [0.5, 0.25, 0.75, 0.125, 0.625]


def test_a_given_duration_keeps_its_length_as_the_step_changes():
    length = Duration(jnp.asarray(1.5), jnp.asarray(0.0))
    steps = [int(length.num_leapfrog(jnp.asarray(step_size), jnp.asarray(0))) for step_size in (0.5, 0.1, 3.0, 1e-9)]
    assert steps == [3, 15, 1, MOST_LEAPFROG]
