"""From the prior by powers of the likelihood: evidence with an honest error, moments, and shares of modes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.flow.correction.problems import valleys, weights_of
from tests.known import linear

import weightscape as ws
from weightscape.core import Deadline, InputError, Silent
from weightscape.flow import annealed_from_prior, prior_draws

KERNEL = ws.HMC(num_warmup=6, num_leapfrog=4)
NUM, RUNS = 256, 16


def run(seed, posterior, **settings):
    chosen = {"num_draws": NUM, "num_transitions": 3, "kernel": KERNEL, "progress": Silent(), **settings}
    return annealed_from_prior(jax.random.key(seed), posterior, **chosen)


@pytest.fixture(scope="module")
def repeats():
    return [run(seed, linear().posterior) for seed in range(RUNS)]


def test_log_evidence_is_the_closed_form_within_honest_errors(repeats):
    """Σ ((value − truth) / error)² over independent runs is χ², between tails of 10⁻⁶.

    Rounded copies add up to 1/4 to the squared error of each stage, beside 1/0.5 − 1 of its weights: a factor of 0.8 at
    the lower end. log Ẑ is low by half its squared error, which widens the upper end by the same mean square.
    """
    truth, found = linear().log_evidence, [one.log_evidence for one in repeats]
    errors = np.array([one.standard_error for one in found])
    z = (np.array([one.value for one in found]) - truth + errors**2 / 2) / errors
    assert 0.8 * stats.chi2(RUNS).ppf(1e-6) < np.sum(z**2) < stats.chi2(RUNS).isf(1e-6)
    ratios = np.exp([one.value - truth for one in found])
    assert abs(ratios.mean() - 1) < 5 * ratios.std(ddof=1) / np.sqrt(RUNS)


def test_draws_have_the_moments_of_the_posterior(repeats):
    """Means over draws of all runs are independent, and their spread tells the error."""
    problem = linear()
    values = np.stack([weights_of(one.draws)[0] for one in repeats]) - problem.mean
    second = np.einsum("rni,rnj->rij", values, values) / NUM
    for found, truth in ((values.mean(axis=1), 0), (second, problem.covariance)):
        error = found.std(axis=0, ddof=1) / np.sqrt(RUNS)
        assert np.all(np.abs(found.mean(axis=0) - truth) < 9 * error)  # Student's t of 15, 2·10⁻⁷ on both sides


def test_powers_rise_to_one_at_the_wanted_efficiency_and_costs_are_told():
    one = run(0, linear().posterior, kernel=ws.HMC(num_warmup=6, num_leapfrog=4, jitter=0.0))
    assert one.powers[0] == 0 and one.powers[-1] == 1 and np.all(np.diff(one.powers) > 0)
    np.testing.assert_allclose(one.efficiencies[:-1], 0.5, atol=1e-6)
    assert one.efficiencies[-1] >= 0.5 and len(one.acceptances) == len(one.powers) - 1
    # 6 + 3 transitions at the first power, 3 + 3 at the others, four gradients in each, and one at each start.
    stages = len(one.powers) - 1
    assert one.draws.facts["gradients"] == NUM * (stages + 4 * (9 + 6 * (stages - 1)))
    again = jax.vmap(linear().posterior.log_density)(jax.tree.map(lambda leaf: leaf[0], one.draws.positions()))
    np.testing.assert_allclose(one.draws.log_density[0], again, rtol=1e-4)


def test_modes_get_the_shares_of_their_mass_though_no_chain_crosses():
    """5.5 standard errors of as many draws as there are effective roots; half of the prior lies in each basin."""
    problem, one = valleys(), run(0, valleys().posterior, num_draws=16_000)
    share = np.mean(np.ravel(one.draws.params.network["w"]) > 0)
    error = np.sqrt(problem.share * (1 - problem.share) / one.effective_roots)
    assert abs(share - problem.share) < 5.5 * error < problem.share - 0.5 + 0.03
    assert abs(one.log_evidence.value - problem.log_evidence) < 5.5 * one.log_evidence.standard_error


def test_a_posterior_with_powers_of_its_own_is_reached():
    """∫ L^β p^γ of normals: each power of a normal is a normal of another variance, times a constant."""
    problem, likelihood, prior = linear(), 0.05, 8.0
    part = lambda power, scale: 0.5 * (1 - power) * np.log(2 * np.pi * scale**2) - 0.5 * np.log(power)
    marginal = problem.noise**2 / likelihood * np.eye(40) + problem.x @ problem.x.T / prior
    truth = stats.multivariate_normal(np.zeros(40), marginal).logpdf(problem.y)
    truth += 40 * part(likelihood, problem.noise) + 3 * part(prior, 1.0)
    one = run(3, problem.posterior.tempered(likelihood=likelihood, prior=prior), num_draws=4000)
    assert abs(one.log_evidence.value - truth) < 5.5 * one.log_evidence.standard_error < 0.5
    scale = likelihood / problem.noise**2
    covariance = np.linalg.inv(scale * problem.x.T @ problem.x + prior * np.eye(3))
    off = weights_of(one.draws)[0].mean(axis=0) - scale * covariance @ problem.x.T @ problem.y
    assert np.all(np.abs(off) < 5.5 * np.sqrt(np.diag(covariance) / one.effective_roots))


def test_networks_from_the_prior_have_its_moments_and_know_their_density():
    target = linear(prior_scale=1.5).posterior
    draws = prior_draws(jax.random.key(0), target, 4000)
    weights = weights_of(draws)[0]
    # 5.5 standard errors of a mean and of a variance of 4,000 normals.
    np.testing.assert_allclose(weights.mean(axis=0), 0, atol=5.5 * 1.5 / 4000**0.5)
    np.testing.assert_allclose(np.cov(weights.T), 1.5**2 * np.eye(3), atol=5.5 * 1.5**2 * (2 / 4000) ** 0.5)
    one = jax.tree.map(lambda leaf: leaf[0, 3], draws.positions())
    np.testing.assert_allclose(draws.log_density[0, 3], target.log_density(one), rtol=1e-5)


def test_without_time_one_stage_goes_to_the_end():
    one = run(0, linear().posterior, progress=Deadline(0.0, Silent()))
    assert one.powers == (0.0, 1.0) and one.efficiencies[0] < 0.5 and not one.is_trusted


def test_likelihoods_that_are_no_numbers_are_refused():
    apply = lambda params, x: jnp.log(params["w"]) * x
    network = ws.networks.Function(lambda key, x: {"w": jnp.ones(())}, apply)
    model = ws.Model(network, ws.likelihoods.Gaussian(0.1), ws.priors.Normal(1.0))
    posterior = model.condition(ws.Batch(np.ones((1, 1)), np.ones((1, 1))))
    with pytest.raises(InputError, match=r"Log likelihoods of draws must be finite, got \d+ that are not"):
        run(0, posterior)
