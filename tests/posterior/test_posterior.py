"""The posterior's density against sums written out by hand, and its units."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import stats
from tests.known import inferred_noise, linear

import weightscape as ws
from weightscape.core import InputError, InputTypeError

X = np.random.default_rng(0).normal(size=(6, 2)) * [3.0, 0.2] + [10.0, -1.0]
Y = np.random.default_rng(1).normal(size=6) * 50 + 1000


def mlp_posterior(batch, noise=0.5):
    likelihood = ws.likelihoods.Gaussian(noise)
    return ws.Model(ws.networks.MLP(hidden=(4,)), likelihood, ws.priors.Normal(1.3)).condition(batch)


def by_hand(params, x):
    h = np.tanh(x @ params["layer0"]["weight"] + params["layer0"]["bias"])
    return (h @ params["layer1"]["weight"] + params["layer1"]["bias"])[:, 0]


def test_log_density_is_likelihood_times_prior(x64):
    posterior = mlp_posterior(ws.Batch(X, Y / 100))
    position = posterior.start_position(jax.random.key(0))
    params = jax.tree.map(np.asarray, position.network)
    log_likelihood = stats.norm.logpdf(Y / 100, by_hand(params, X), 0.5).sum()
    log_prior = sum(stats.norm.logpdf(leaf, 0, 1.3).sum() for leaf in jax.tree.leaves(params))
    np.testing.assert_allclose(posterior.log_likelihood(position), log_likelihood, rtol=1e-12)
    np.testing.assert_allclose(posterior.log_prior(position), log_prior, rtol=1e-12)
    np.testing.assert_allclose(posterior.log_density(position), log_likelihood + log_prior, rtol=1e-12)


def test_density_of_positions_carries_the_jacobian(x64):
    posterior = inferred_noise().posterior
    position = ws.Parameters({"layer0": {"weight": jnp.asarray([[0.4]])}}, {"scale": jnp.asarray(-0.8)}, ())
    sigma = np.exp(-0.8)
    assert float(posterior.constrain(position).likelihood["scale"]) == pytest.approx(sigma)
    log_prior = stats.norm.logpdf(0.4) + stats.gamma.logpdf(sigma, 0.5) + np.log(sigma)
    np.testing.assert_allclose(posterior.log_prior(position), log_prior, rtol=1e-12)
    total = posterior.log_likelihood(position) + log_prior
    np.testing.assert_allclose(posterior.log_density(position), total, rtol=1e-12)
    back = posterior.unconstrain(posterior.constrain(position))
    np.testing.assert_allclose(ravel_pytree(back)[0], ravel_pytree(position)[0], rtol=1e-12)


def test_tempering_powers_the_densities_but_not_the_jacobian(x64):
    posterior = inferred_noise().posterior
    position = ws.Parameters({"layer0": {"weight": jnp.asarray([[0.4]])}}, {"scale": jnp.asarray(-0.8)}, ())
    log_jacobian = -0.8
    log_prior = float(posterior.log_prior(position)) - log_jacobian
    expected = 0.3 * float(posterior.log_likelihood(position)) + 2.0 * log_prior + log_jacobian
    tempered = posterior.tempered(likelihood=0.3, prior=2.0)
    np.testing.assert_allclose(tempered.log_density(position), expected, rtol=1e-12)


def test_minibatch_estimate_is_unbiased(x64):
    posterior = mlp_posterior(ws.Batch(X, Y / 100)).tempered(likelihood=0.7, prior=1.5)
    position = posterior.start_position(jax.random.key(1))
    # The average over every possible batch of two is the expectation.
    pairs = jnp.stack(jnp.meshgrid(jnp.arange(6), jnp.arange(6)), axis=-1).reshape(-1, 2)
    estimates = jax.vmap(posterior.log_density_estimate, (None, 0))(position, pairs)
    np.testing.assert_allclose(estimates.mean(), posterior.log_density(position), rtol=1e-12)
    assert estimates.std() > 0.1


def test_scaling_is_applied_inside_and_densities_are_in_original_units(x64):
    scaling = ws.data.Scaling.fit(X, Y, "regression")
    posterior = mlp_posterior(ws.Batch(X, Y, scaling))
    position = posterior.start_position(jax.random.key(2))
    params = jax.tree.map(np.asarray, position.network)
    mean = by_hand(params, (X - X.mean(axis=0)) / X.std(axis=0)) * Y.std() + Y.mean()
    expected = stats.norm.logpdf(Y, mean, 0.5 * Y.std())
    np.testing.assert_allclose(posterior.pointwise_log_likelihood(posterior.constrain(position)), expected, rtol=1e-9)
    other = ws.Batch(X[:2] + 1.0, Y[:2] - 30.0)
    mean = by_hand(params, (X[:2] + 1 - X.mean(axis=0)) / X.std(axis=0)) * Y.std() + Y.mean()
    expected = stats.norm.logpdf(Y[:2] - 30, mean, 0.5 * Y.std()).sum()
    np.testing.assert_allclose(posterior.log_likelihood(position, other), expected, rtol=1e-9)


def test_evidence_of_the_linear_model_is_the_integral_of_the_density(x64):
    """The mean of exp(log p(D, θ) − log q(θ)) under the exact posterior q is the evidence, draw by draw."""
    problem = linear()
    exact = stats.multivariate_normal(problem.mean, problem.covariance)
    weights = exact.rvs(5, random_state=0)
    for weight in weights:
        position = ws.Parameters({"layer0": {"weight": jnp.asarray(weight[:, None])}}, {}, ())
        log_evidence = float(problem.posterior.log_density(position)) - exact.logpdf(weight)
        np.testing.assert_allclose(log_evidence, problem.log_evidence, rtol=1e-9)


def test_output_size_is_bound_from_the_targets():
    two = np.stack([Y, Y], axis=1)
    assert mlp_posterior(ws.Batch(X, Y)).model.network.outputs == 1
    assert mlp_posterior(ws.Batch(X, two)).model.network.outputs == 2
    model = ws.Model(ws.networks.MLP(), ws.likelihoods.HeteroscedasticGaussian(), ws.priors.Normal())
    assert model.condition(ws.Batch(X, two)).model.network.outputs == 4
    with pytest.raises(InputError, match="must match the targets' 1, got 3"):
        ws.Model(ws.networks.MLP(outputs=3), ws.likelihoods.Gaussian(), ws.priors.Normal()).condition(ws.Batch(X, Y))
    flat = ws.networks.Function(lambda key, x: jnp.zeros(()), lambda params, x: x)
    with pytest.raises(InputError, match=r"must have shape \(1, 1\), got \(1, 2\)"):
        ws.Model(flat, ws.likelihoods.Gaussian(), ws.priors.Normal()).condition(ws.Batch(X, Y))


def test_parts_in_the_wrong_place_are_refused(unchecked):
    with pytest.raises(InputTypeError, match="`likelihood` of Model must be a Likelihood, got Normal"):
        ws.Model(ws.networks.MLP(), ws.priors.Normal(), ws.likelihoods.Gaussian())
    model = ws.Model(ws.networks.MLP(), ws.likelihoods.Gaussian(), ws.priors.Normal())
    with pytest.raises(InputTypeError, match="`batch` of condition must be a Batch, got tuple"):
        model.condition((X, Y))


def test_prior_predictive_of_a_linear_model_is_gaussian(x64):
    model = ws.Model(
        ws.networks.MLP(hidden=(), bias=False, outputs=1), ws.likelihoods.Gaussian(0.5), ws.priors.Normal(2.0)
    )
    x, num = jnp.asarray([[1.0, 0.5], [-1.0, 2.0]]), 40_000
    drawn = model.sample_prior(jax.random.key(0), x, num)
    covariance = 4.0 * np.asarray(x @ x.T)
    for values, expected in ((drawn.outputs, covariance), (drawn.y, covariance + 0.25 * np.eye(2))):
        sample = np.asarray(values)[..., 0]
        # Var(s_ij) = (σ_ii σ_jj + σ_ij²) / n for a Gaussian.
        error = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / num)
        assert np.all(np.abs(np.cov(sample.T) - expected) < 5 * error)
