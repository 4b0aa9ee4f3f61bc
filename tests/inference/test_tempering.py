"""Parallel tempering: the right posterior and evidence, and modes that HMC does not leave."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.known import assert_moments, linear, monte_carlo_error

import weightscape as ws
from weightscape.core import InputError
from weightscape.inference.mcmc.tempering import exchange, ladder_powers

SMALL = ws.ParallelTempering(num_chains=4, num_draws=3000, num_warmup=300, num_replicas=8, num_leapfrog=5)


@pytest.fixture(scope="module")
def ladder():
    return SMALL.run(jax.random.key(0), linear().posterior)


def test_linear_regression_has_the_closed_form_moments(ladder):
    weights = np.asarray(ladder.params.network["layer0"]["weight"], np.float64)[..., 0]
    assert_moments(weights, linear().mean, linear().covariance)


def test_evidence_is_the_closed_form(ladder):
    evidence = ws.ladder_evidence(ladder)
    assert 0 < evidence.standard_error < 0.2
    assert abs(evidence.value - linear().log_evidence) < 5 * evidence.standard_error


def test_log_density_is_the_posteriors_at_the_draws(ladder):
    again = jax.vmap(jax.vmap(linear().posterior.log_density))(ladder[:, :20].positions())
    np.testing.assert_allclose(ladder[:, :20].log_density, again, rtol=1e-4)
    coldest = np.asarray(ladder.info["log_likelihood_007"])[:, :20]
    np.testing.assert_allclose(
        coldest, jax.vmap(jax.vmap(linear().posterior.log_likelihood))(ladder[:, :20].positions()), rtol=1e-4
    )


def test_exchanges_keep_the_product_of_targets():
    """Two replicas on two states: flows in both directions are equal under the product of the targets."""
    betas, values = jnp.array([0.3, 1.0]), np.array([-1.0, 0.7])
    keys = jax.random.split(jax.random.key(1), 20_000)
    swap = jax.vmap(lambda key, ells: exchange(key, betas, ells, jnp.asarray(0))[0][0] == 1, (0, None))
    rates = [float(np.mean(swap(keys, jnp.asarray(values[list(pair)], jnp.float32)))) for pair in ((0, 1), (1, 0))]
    weights = [np.exp(0.3 * values[i] + 1.0 * values[j]) for i, j in ((0, 1), (1, 0))]
    # Each flow's standard error is at most weight · √(¼ / 20,000).
    error = max(weights) * np.sqrt(2 * 0.25 / 20_000)
    assert abs(weights[0] * rates[0] - weights[1] * rates[1]) < 5 * error
    assert min(rates) < 0.5 and max(rates) == 1


def test_pairs_take_turns():
    always = jnp.zeros(5)
    even, _ = exchange(jax.random.key(0), ladder_powers(5, jnp.asarray(1.0)), always, jnp.asarray(0))
    odd, acceptance = exchange(jax.random.key(0), ladder_powers(5, jnp.asarray(1.0)), always, jnp.asarray(1))
    assert even.tolist() == [1, 0, 3, 2, 4] and odd.tolist() == [0, 2, 1, 4, 3]
    assert float(acceptance) == 1


def two_explanations() -> ws.Posterior:
    """One tanh unit on (−1, 0), (0, 1), (1, 0): it rises or it falls, and by symmetry either with probability 1/2."""
    model = ws.Model(ws.networks.MLP(hidden=(1,)), ws.likelihoods.Gaussian(0.08), ws.priors.Normal(2.0))
    return model.condition(ws.Batch(np.array([[-1.0], [0.0], [1.0]]), np.array([0.0, 1.0, 0.0])))


def rises(draws):
    """Whether each draw's function rises from −1 to 1."""
    ends = jnp.array([[-1.0], [1.0]])
    outputs = jax.vmap(jax.vmap(lambda params: draws.model.network.apply(params, ends)))(draws.params.network)
    return np.asarray(outputs[:, :, 1, 0] > outputs[:, :, 0, 0], np.float64)


@pytest.mark.slow  # docs/tutorials/stuck_chains.md shows the same in every run of the tests
def test_both_explanations_are_found():
    method = ws.ParallelTempering(num_chains=4, num_draws=3000, num_warmup=500, num_replicas=10, num_leapfrog=10)
    share = rises(method.run(jax.random.key(2), two_explanations()))
    error = float(monte_carlo_error(share))
    assert error < 0.08
    assert abs(share.mean() - 0.5) < 5 * error
    switches = np.abs(np.diff(share, axis=1)).sum(axis=1)
    assert np.all(switches > 20)
    # HMC with as many gradients stays where it began.
    alone = ws.HMC(num_chains=4, num_draws=3000, num_warmup=500, num_leapfrog=100)
    stuck = rises(alone.run(jax.random.key(2), two_explanations()))
    assert np.abs(np.diff(stuck, axis=1)).sum() < switches.sum() / 20


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match="`num_replicas` of ParallelTempering must be at least 2, got 1"):
        ws.ParallelTempering(num_replicas=1)
    with pytest.raises(InputError, match="must come from a ladder of temperatures, got MAP"):
        ws.ladder_evidence(ws.MAP(num_steps=1).run(jax.random.key(0), linear().posterior))
