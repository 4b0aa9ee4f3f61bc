"""Annealing: evidence with an honest error, and particles of the posterior."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.flow.correction.problems import Affine, Folded, gaussian_near, valleys, weights_of
from tests.known import linear

from weightscape.core import Deadline, InputError, Silent
from weightscape.core.batches import in_batches
from weightscape.core.layout import Layout
from weightscape.draws import systematic
from weightscape.flow.correction import annealed
from weightscape.flow.correction.particles import Ground, Move, Start
from weightscape.flow.correction.stages import log_mean, next_power, relative_error, stage_efficiency

NUM, RUNS = 512, 60


def run(seed, transport, posterior, **settings):
    chosen = {"num_particles": NUM, "batch_size": NUM, "share": 0.7, "progress": Silent(), **settings}
    return annealed(jax.random.key(seed), posterior, transport, **chosen)


def off(problem):
    """1.6 deviations away, as the covariance measures, and too wide."""
    return Affine(gaussian_near(problem, shift=0.4, stretch=1.3))


@pytest.fixture(scope="module")
def repeats():
    return [run(seed, off(linear()), linear().posterior) for seed in range(RUNS)]


def test_log_evidence_is_the_closed_form_within_honest_errors(repeats):
    """Σ ((value − truth) / error)² over independent runs is χ², between tails of 10⁻⁶.

    Rounded copies add up to 1/4 to the squared error of each stage, beside 1/0.7 − 1 of its weights: a factor of 0.6
    at the lower end.
    """
    truth, found = linear().log_evidence, [run.log_evidence for run in repeats]
    z = np.array([(one.value - truth) / one.standard_error for one in found])
    assert 0.6 * stats.chi2(RUNS).ppf(1e-6) < np.sum(z**2) < stats.chi2(RUNS).isf(1e-6)
    assert abs(z.sum()) < 5 * np.sqrt(RUNS)
    assert all(one.standard_error < 0.1 for one in found)
    ratios = np.exp([one.value - truth for one in found])
    assert abs(ratios.mean() - 1) < 5 * ratios.std(ddof=1) / np.sqrt(RUNS)


def test_particles_have_the_moments_of_the_posterior(repeats):
    """Means over particles of all runs are independent, and their spread tells the error."""
    problem = linear()
    means = np.stack([weights_of(run.draws)[0].mean(axis=0) for run in repeats])
    centred = np.stack([weights_of(run.draws)[0] - problem.mean for run in repeats])
    covariances = np.einsum("rni,rnj->rij", centred, centred) / NUM
    for found, exact in ((means, problem.mean), (covariances, problem.covariance)):
        error = found.std(axis=0, ddof=1) / np.sqrt(RUNS)
        # |t| with 59 degrees of freedom is above 5.4 with probability 10⁻⁶.
        assert np.all(np.abs(found.mean(axis=0) - exact) < 5.4 * error)
    scale = np.sqrt(np.diag(problem.covariance))
    assert np.all(means.std(axis=0, ddof=1) / np.sqrt(RUNS) < 0.05 * scale)


def test_stages_keep_the_wanted_share(repeats):
    one = repeats[0]
    assert one.powers[0] == 0 and one.powers[-1] == 1 and len(one.powers) > 3
    assert np.all(np.diff(one.powers) > 0)
    np.testing.assert_allclose(one.efficiencies[:-1], 0.7, atol=1e-6)
    assert one.efficiencies[-1] >= 0.7
    assert len(one.acceptances) == len(one.powers) - 1 and 0.1 < one.acceptances[-1] < 0.6
    assert 100 < one.effective_roots < NUM and one.is_trusted
    assert one.draws.facts["pushes"] == NUM * (1 + 2 * len(one.acceptances))
    assert one.log_evidence.kind == one.draws.facts["log_evidence"]["kind"] == "annealed"


def test_draws_know_their_density(repeats):
    draws = repeats[0].draws[:, :20]
    again = jax.vmap(jax.vmap(linear().posterior.log_density))(draws.positions())
    np.testing.assert_allclose(draws.log_density, again, rtol=1e-4)
    assert draws.log_proposal is None and draws.log_weights is None


def test_two_modes_have_the_evidence_and_shares_of_quadrature():
    problem = valleys()
    layout = Layout.of(problem.posterior.start_position(jax.random.key(0)))
    runs = [run(seed, Folded(layout), problem.posterior, batch_size=200) for seed in range(8)]
    for one in runs:
        assert abs(one.log_evidence.value - problem.log_evidence) < 5 * one.log_evidence.standard_error < 1.0
    values = np.stack([np.asarray(one.draws.params.network["w"], np.float64)[0] for one in runs])
    for found, exact in (
        (np.mean(values > 0, axis=1), problem.share),
        (values.mean(axis=1), problem.mean),
        (np.mean((values - problem.mean) ** 2, axis=1), problem.variance),
    ):
        # |t| with 7 degrees of freedom is above 15 with probability 10⁻⁶.
        error = found.std(ddof=1) / np.sqrt(8)
        assert abs(found.mean() - exact) < 15 * error
    assert np.mean(values > 0, axis=1).std(ddof=1) / np.sqrt(8) < 0.02


def test_moves_leave_the_tempered_target_as_it_is():
    """With q = N(m, τ² Σ) and p Gaussian, π_β is normal with precision (1 − β)/τ² + β in units of Σ⁻¹."""
    problem, power, stretch = linear(), 0.4, 1.5
    ground = Ground(problem.posterior, Affine(gaussian_near(problem, stretch=stretch)))
    start = Start(ground)
    precision = (1 - power) + power * stretch**2  # in the base space, where q has precision 1
    keys = jax.random.split(jax.random.key(0), 4096)
    z = jax.vmap(start)(keys).z / np.sqrt(precision)
    particles = jax.tree.map(np.asarray, jax.vmap(ground.at)(z))
    move = Move(ground, jnp.asarray(power), jnp.asarray(0.9))
    for i in range(3):
        particles, acceptance = in_batches(move, 4096, jax.random.split(jax.random.key(i + 1), 4096), particles)
    assert 0.3 < acceptance.mean() < 0.98
    moved = particles.z - np.asarray(z)
    assert np.mean(np.any(moved != 0, axis=1)) > 0.5
    covariance = particles.z.T @ particles.z / 4096
    # The error of a variance v of n independent normals is v √(2/n), of a covariance v √(1/n).
    error = np.where(np.eye(3) > 0, np.sqrt(2 / 4096), np.sqrt(1 / 4096)) / precision
    assert np.all(np.abs(particles.z.mean(axis=0)) < 5 / np.sqrt(4096 * precision))
    assert np.all(np.abs(covariance - np.eye(3) / precision) < 5 * error)


def test_batches_change_nothing():
    problem = linear()
    whole, parts = (run(0, off(problem), problem.posterior, batch_size=size, num_particles=64) for size in (64, 48))
    np.testing.assert_allclose(weights_of(whole.draws), weights_of(parts.draws), rtol=1e-3, atol=1e-4)
    assert whole.log_evidence.value == pytest.approx(parts.log_evidence.value, abs=1e-3)


def test_other_numbers_compile_nothing():
    """Powers and lengths of moves are numbers, as are the transport's own: no stage is traced, nor another run."""
    traces = []

    class Watched(Affine):
        def push(self, z):
            traces.append(None)
            return Affine.push(self, z)

    watched = lambda **wrong: Watched(gaussian_near(linear(), **wrong))
    first = run(0, watched(shift=0.1), linear().posterior, num_particles=64, batch_size=64)
    before = len(traces)
    second = run(1, watched(shift=0.6), linear().posterior, num_particles=64, batch_size=64, share=0.8, num_moves=3)
    assert len(traces) == before > 0 and len(second.powers) > len(first.powers) + 1


def test_time_that_is_up_ends_in_one_stage():
    problem = linear()
    quick = run(0, off(problem), problem.posterior, progress=Deadline(0.0, Silent()))
    assert quick.powers == (0.0, 1.0) and quick.efficiencies[0] < 0.7
    assert quick.effective_roots == pytest.approx(NUM * quick.efficiencies[0])
    assert abs(quick.log_evidence.value - problem.log_evidence) < 5 * quick.log_evidence.standard_error


def test_an_approximation_that_misses_the_posterior_is_not_trusted():
    """Eight deviations away: the few particles that set out in the right direction decide all."""
    far = Affine(gaussian_near(linear(), shift=2.0))
    assert not run(0, far, linear().posterior).is_trusted


def test_powers_and_copies_in_numbers():
    """Of two kinds of particles, half of them e times heavier for each unit of power."""
    log_weights = np.repeat([0.0, 1.0], 50)
    power = next_power(5 * log_weights, 0.1, 0.8)
    a = np.exp(5 * (power - 0.1))
    assert (1 + a) ** 2 / (2 * (1 + a**2)) == pytest.approx(0.8) == stage_efficiency(5 * log_weights, power - 0.1)
    assert next_power(0.1 * log_weights, 0.1, 0.8) == 1.0
    assert log_mean(log_weights, 0.5) == pytest.approx(np.log((1 + np.exp(0.5)) / 2))
    assert log_mean(np.array([-np.inf, 0.0]), 0.5) == pytest.approx(np.log(0.5))
    weights = np.array([0.0, 2.5, 0.25, 1.25, 0.0])
    counts = np.stack([np.bincount(systematic(offset, weights), minlength=5) for offset in np.linspace(0, 0.999, 1000)])
    expected = 5 * weights / 4
    assert np.all((counts >= np.floor(expected)) & (counts <= np.ceil(expected)))
    np.testing.assert_allclose(counts.mean(axis=0), expected, atol=2e-3)


def test_the_error_of_one_stage_and_of_families():
    """Without copies it is that of a mean; particles of one ancestor count as one."""
    weights = np.random.default_rng(0).gamma(2.0, size=1000)
    alone = relative_error(weights, np.arange(1000))
    assert alone == pytest.approx(weights.std() / weights.mean() / np.sqrt(1000))
    assert relative_error(np.ones(4), np.array([0, 0, 1, 1])) == pytest.approx(np.sqrt(4) / 4)
    assert relative_error(np.ones(4), np.arange(4)) == 0


def test_broken_transports_are_refused():
    class Broken(Affine):
        def push(self, z):
            return Affine.push(self, z)[0], jnp.full((), jnp.nan)

    problem = linear()
    with pytest.raises(InputError, match="Log weights of particles must be finite, got 16"):
        run(0, Broken(gaussian_near(problem)), problem.posterior, num_particles=16, batch_size=16)
    with pytest.raises(InputError, match="`share` of annealed"):
        run(0, off(problem), problem.posterior, share=1.5)
