"""Laws that every sampler obeys. A row in `SAMPLERS` enrols a new one."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.known import assert_moments, badly_scaled, inferred_noise, linear, monte_carlo_error, tanh_pair

import weightscape as ws
from weightscape.core import InputError, Silent
from weightscape.inference.mcmc.isokinetic import Isokinetic

# Methods for a target whose narrowest direction has a standard deviation of about `scale`. MCLMC is biased by its step
# size; at this energy variance by less than one per cent, while five Monte-Carlo errors are more than that everywhere.
SAMPLERS = {
    "hmc": lambda scale: ws.HMC(num_chains=8, num_draws=1000, num_warmup=400, num_leapfrog=6),
    "hmc_low_rank": lambda scale: ws.HMC(8, 1000, 400, num_leapfrog=6, mass=ws.LowRankMass(rank=1)),
    "hmc_trajectory": lambda scale: ws.HMC(num_chains=8, num_draws=1000, num_warmup=400, trajectory=2.0),
    "nuts": lambda scale: ws.NUTS(num_chains=8, num_draws=1000, num_warmup=400),
    "mala": lambda scale: ws.MALA(num_chains=8, num_draws=1000, num_warmup=1000, thin=20),
    "mclmc": lambda scale: ws.MCLMC(num_chains=8, num_draws=1000, num_warmup=1500, energy_variance=1e-5),
    "metropolis": lambda scale: ws.MetropolisHastings(ws.RandomWalk(scale), 8, 1000, num_warmup=3000, thin=60),
}
HAMILTONIAN = {"acceptance", "is_accepted", "is_divergent", "energy", "energy_error", "step_size", "num_leapfrog"}
NOTES = {
    "hmc": HAMILTONIAN,
    "hmc_low_rank": HAMILTONIAN,
    "hmc_trajectory": HAMILTONIAN,
    "nuts": HAMILTONIAN | {"tree_depth"},
    "mala": HAMILTONIAN,
    "mclmc": {"is_accepted", "is_divergent", "energy_error", "step_size", "turning_length"},
    "metropolis": {"acceptance", "is_accepted"},
}
# Other values of the numbers that may change without a new program.
CHANGES = {
    "hmc": {"num_leapfrog": 7, "jitter": 0.1, "step_size": 0.01, "target_acceptance": 0.9},
    "hmc_low_rank": {"step_size": 0.01, "temperature": 0.9},
    "hmc_trajectory": {"trajectory": 0.7, "jitter": 0.1, "target_acceptance": 0.9},
    "nuts": {"step_size": 0.01, "target_acceptance": 0.9},
    "mala": {"step_size": 0.01, "target_acceptance": 0.5},
    "mclmc": {"step_size": 0.01, "energy_variance": 1e-3},
    "metropolis": {"proposal": ws.RandomWalk(0.2)},
}


def each_sampler(*quick, without=()):
    """All samplers, of which those that are not `quick` are left to `make test-all`: together they take minutes."""
    names = [name for name in SAMPLERS if name not in without]
    return pytest.mark.parametrize(
        "name", [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]
    )


def run(method, seed, posterior, **around):
    return method.run(jax.random.key(seed), posterior, progress=Silent(), **around)


def weights_of(draws):
    return np.asarray(draws.params.network["layer0"]["weight"], np.float64)[..., 0]


@each_sampler("hmc_low_rank", "nuts", "mala", "mclmc", "metropolis")
def test_linear_regression_has_the_closed_form_moments(name):
    problem = linear()
    draws = run(SAMPLERS[name](0.05), 0, problem.posterior, init=ws.MAP(num_steps=500))
    assert_moments(weights_of(draws), problem.mean, problem.covariance)


@each_sampler("hmc", "hmc_low_rank", "mclmc", without=("metropolis",))  # whose steps are all one size
def test_badly_scaled_regression_has_the_closed_form_moments(name):
    problem = badly_scaled()
    draws = run(SAMPLERS[name](0.05), 1, problem.posterior)
    assert_moments(weights_of(draws), problem.mean, problem.covariance)


@each_sampler("hmc_trajectory", "mala", "metropolis")
def test_a_skewed_posterior_has_the_moments_of_quadrature(name):
    problem = inferred_noise()
    draws = run(SAMPLERS[name](0.5), 2, problem.posterior)
    scale = np.asarray(draws.params.likelihood["scale"], np.float64)
    values = np.stack([weights_of(draws)[..., 0], scale], axis=-1)
    assert_moments(values, problem.mean, problem.covariance)


@each_sampler("hmc", "mclmc")
def test_a_network_with_two_modes_has_the_moments_of_quadrature(name):
    problem = tanh_pair()
    draws = run(SAMPLERS[name](0.2), 3, problem.posterior)
    inner, outer = (np.asarray(draws.params.network[f"layer{i}"]["weight"], np.float64)[..., 0, 0] for i in (0, 1))
    folded = np.stack([inner * np.sign(outer), np.abs(outer)], axis=-1)
    assert_moments(folded, problem.mean, problem.covariance)


@each_sampler("mala", "metropolis")
def test_twice_the_temperature_is_twice_the_covariance(name):
    problem = linear()
    method = dataclasses.replace(SAMPLERS[name](0.05), temperature=2.0)
    draws = run(method, 4, problem.posterior, init=ws.MAP(num_steps=500))
    assert_moments(weights_of(draws), problem.mean, 2 * problem.covariance)


@each_sampler("hmc_low_rank", "nuts", "mclmc", "metropolis")
def test_same_bits_promised_notes_and_no_new_program(name):
    traces = []

    def apply(params, x):
        traces.append(None)
        return x @ params

    network = ws.networks.Function(lambda key, x: jnp.zeros((x.shape[1], 1)), apply)

    def target(noise):
        model = ws.Model(network, ws.likelihoods.Gaussian(noise), ws.priors.Normal(1.0))
        return model.condition(ws.Batch(np.random.default_rng(0).normal(size=(20, 3)), np.linspace(-1, 1, 20)))

    short = dataclasses.replace(SAMPLERS[name](0.1), num_chains=2, num_draws=30, num_warmup=20, thin=2)
    one = run(short, 0, target(0.3))
    compiled = len(traces)
    posterior, before = target(0.7), len(traces)
    changed = dataclasses.replace(short, num_draws=27, num_warmup=18, thin=3, **CHANGES[name])
    run(changed, 1, posterior)
    # What is left is `eval_shape` for the buffers' size, at most four traces of a kernel for each of two phases.
    assert compiled > 2 * (len(traces) - before) and len(traces) - before <= 2 * 4
    again, other = run(short, 0, target(0.3)), run(short, 5, target(0.3))
    for left, right in zip(jax.tree.leaves(one.params), jax.tree.leaves(again.params), strict=True):
        assert np.array_equal(left, right)
    assert not np.array_equal(one.log_density, other.log_density)
    assert set(one.info) == NOTES[name]
    assert all(note.shape == (2, 30) for note in one.info.values())


class Interrupted(Silent):
    """Stops the run in the middle of warm-up."""

    def advance(self, done, facts):
        if done > 40:
            raise KeyboardInterrupt


@each_sampler()
def test_a_run_killed_in_warm_up_ends_in_the_same_bits(name, tmp_path):
    posterior = linear().posterior
    method = dataclasses.replace(SAMPLERS[name](0.05), num_draws=50, num_warmup=150)
    whole = run(method, 6, posterior)
    with pytest.raises(KeyboardInterrupt):
        method.run(jax.random.key(6), posterior, store=tmp_path / "run", progress=Interrupted())
    resumed = run(method, 6, posterior, store=tmp_path / "run", resume=True)
    assert np.array_equal(whole.log_density, resumed.log_density)


def test_halving_the_step_divides_the_energy_error_by_four():
    """Leapfrog over a fixed time errs by ΔH = ε² f + O(ε⁴), so E ΔH² falls by 16."""
    posterior = linear().posterior
    start = run(ws.HMC(num_chains=8, num_draws=50, num_warmup=400, num_leapfrog=6), 7, posterior)
    squares = []
    for step_size, num_leapfrog in ((0.01, 10), (0.005, 20)):
        method = ws.HMC(8, 4000, 0, num_leapfrog=num_leapfrog, jitter=0.0, step_size=step_size, mass=ws.UnitMass())
        draws = run(method, 8, posterior, init=start)
        assert np.all(draws.info["step_size"] == np.float32(step_size))
        squares.append(np.asarray(draws.info["energy_error"], np.float64) ** 2)
    ratio = squares[0].mean() / squares[1].mean()
    relative_error = np.sqrt(sum((monte_carlo_error(values) / values.mean()) ** 2 for values in squares))
    # The next order, (ε/s)² with s the narrowest standard deviation, adds a tenth.
    assert abs(ratio - 16) < 16 * (5 * relative_error + 0.1)
    assert relative_error < 0.05


def test_flips_are_in_detailed_balance():
    """Flows i → j are those back, and π_i P_ij with P_ij = min(1, π_j/π_i) / 3 for a flip of one of three weights."""
    generator = np.random.default_rng(3)
    x = generator.normal(size=(5, 3))
    model = ws.Model(ws.networks.MLP(hidden=(), bias=False), ws.likelihoods.Gaussian(8.0), ws.priors.signs(0.6))
    posterior = model.condition(ws.Batch(x, x @ np.array([1.0, -1.0, 1.0])))
    method = ws.MetropolisHastings(ws.Flip(), num_chains=16, num_draws=4000, num_warmup=200, thin=1)
    visited = (weights_of(run(method, 9, posterior)) > 0) @ np.array([4, 2, 1])
    configurations = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    place = lambda w: ws.Parameters({"layer0": {"weight": w[:, None]}}, {}, ())
    log_density = np.asarray(jax.vmap(lambda w: posterior.log_density(place(w)))(jnp.asarray(configurations)))
    probability = np.exp(log_density - log_density.max())
    probability /= probability.sum()
    assert probability.min() > 0.01  # or flows would be too rare to count
    for i, j in itertools.combinations(range(8), 2):
        there = ((visited[:, :-1] == i) & (visited[:, 1:] == j)).astype(float)
        back = ((visited[:, :-1] == j) & (visited[:, 1:] == i)).astype(float)
        neighbours = np.sum(configurations[i] != configurations[j]) == 1
        flow = min(probability[i], probability[j]) / 3 if neighbours else 0.0
        assert abs(there.mean() - flow) <= 5 * monte_carlo_error(there)
        assert abs((there - back).mean()) <= 5 * monte_carlo_error(there - back)


def test_low_rank_mass_saves_gradients_across_the_axes():
    """One direction across the axes is a hundred times narrower than the others: no diagonal can help."""
    direction = np.where(np.arange(20) % 2, 1.0, -1.0) / np.sqrt(20)
    x, y = 100 * direction[None, :], np.array([0.5])
    covariance = np.linalg.inv(x.T @ x + np.eye(20))
    spread = np.sqrt(np.diag(covariance))
    assert np.linalg.cond(covariance / np.outer(spread, spread)) > 1e3
    model = ws.Model(ws.networks.MLP(hidden=(), bias=False), ws.likelihoods.Gaussian(1.0), ws.priors.Normal(1.0))
    cost = []
    for mass in (ws.DiagonalMass(), ws.LowRankMass(rank=2)):
        method = ws.HMC(num_chains=4, num_draws=400, num_warmup=400, trajectory=1.5, mass=mass)
        draws = run(method, 10, model.condition(ws.Batch(x, y)))
        centred = weights_of(draws) - covariance @ x.T @ y
        values = np.stack([centred @ direction, centred[..., 0], np.sum(centred**2, axis=-1)], axis=-1)
        effective = values.var(axis=(0, 1)) / monte_carlo_error(values) ** 2
        cost.append(draws.info["num_leapfrog"].sum() / effective.min())
    assert cost[1] < cost[0] / 10


def test_mclmc_stays_and_turns_where_the_density_is_not_finite():
    wall = lambda w: jnp.where(w > 1.0, jnp.nan, w)
    network = ws.networks.Function(lambda key, x: jnp.full((2, 1), 0.9), lambda params, x: x @ wall(params))
    model = ws.Model(network, ws.likelihoods.Gaussian(1.0), ws.priors.Normal(1.0))
    posterior = model.condition(ws.Batch(np.ones((3, 2)), np.ones(3)))
    sampler = Isokinetic(posterior, ws.UnitMass(), jnp.asarray(0.5), jnp.asarray(1e-3), jnp.asarray(100))
    state = sampler.init(posterior.start_position(jax.random.key(0)))
    after, notes = sampler.move(jax.random.key(1), state, jnp.asarray(0))
    assert notes["is_divergent"] and not notes["is_accepted"] and np.isposinf(notes["energy_error"])
    assert np.array_equal(after.chain.position.network, state.chain.position.network)
    assert not np.array_equal(after.chain.momentum.network, state.chain.momentum.network)
    draws = run(ws.MCLMC(num_chains=2, num_draws=200, num_warmup=300, thin=2), 11, posterior)
    assert np.all(np.isfinite(draws.log_density)) and np.all(np.asarray(draws.params.network) <= 1.0)


def test_mclmc_needs_two_unknowns():
    network = ws.networks.MLP(hidden=(), bias=False)
    model = ws.Model(network, ws.likelihoods.Gaussian(1.0), ws.priors.Normal(1.0))
    with pytest.raises(InputError, match="MCLMC must have at least two unknowns to turn in, got 1. Use HMC."):
        run(ws.MCLMC(), 0, model.condition(ws.Batch(np.ones((2, 1)), np.ones(2))))
