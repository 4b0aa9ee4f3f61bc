"""MAP and deep ensembles against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats
from tests.known import inferred_noise, linear

import weightscape as ws
from weightscape.core import InputError


def weights(draws):
    return np.asarray(draws.params.network["layer0"]["weight"])[..., 0]


def test_map_is_the_closed_form_mode():
    problem = linear()
    draws = ws.MAP(num_steps=3000).run(jax.random.key(0), problem.posterior)
    assert weights(draws).shape == (1, 1, 3)
    # A gradient of rounding size leaves an error of 1e-4 standard deviations at most.
    deviation = (weights(draws)[0, 0] - problem.mean) / np.sqrt(np.diag(problem.covariance))
    assert np.abs(deviation).max() < 1e-3


def test_map_with_inferred_noise_is_the_mode_over_positions():
    posterior = inferred_noise().posterior
    x, y = np.asarray(posterior.x)[:, 0].astype(float), np.asarray(posterior.y).astype(float)

    def negative(z):
        sigma = np.exp(z[1])
        log_prior = stats.norm.logpdf(z[0]) + stats.gamma.logpdf(sigma, 0.5) + z[1]
        return -stats.norm.logpdf(y, z[0] * x, sigma).sum() - log_prior

    mode = optimize.minimize(negative, [0.0, 0.0], tol=1e-12).x
    draws = ws.MAP(num_steps=3000).run(jax.random.key(0), posterior)
    np.testing.assert_allclose(weights(draws)[0, 0], mode[:1], atol=1e-4)
    np.testing.assert_allclose(draws.params.likelihood["scale"][0, 0], np.exp(mode[1]), rtol=1e-4)


def test_minibatches_reach_the_neighbourhood_of_the_mode():
    problem = linear()
    draws = ws.MAP(num_steps=4000, batch_size=10).run(jax.random.key(1), problem.posterior)
    deviation = (weights(draws)[0, 0] - problem.mean) / np.sqrt(np.diag(problem.covariance))
    assert np.abs(deviation).max() < 0.3
    assert np.abs(deviation).max() > 1e-4  # otherwise no minibatch was drawn


def test_ensemble_members_start_apart_and_each_climbs():
    data = ws.data.load("iris")
    model = ws.Model(ws.networks.MLP(hidden=(4,)), ws.likelihoods.Categorical(3), ws.priors.Normal(1.0))
    posterior = model.condition(data.train)
    short = ws.DeepEnsemble(num_members=4, num_steps=10).run(jax.random.key(0), posterior)
    long = ws.DeepEnsemble(num_members=4, num_steps=1000).run(jax.random.key(0), posterior)
    assert long.num_chains == 4 and long.num_draws == 1
    assert np.all(np.asarray(long.log_density) > np.asarray(short.log_density) + 10)
    first = np.asarray(long.params.network["layer0"]["weight"])[:, 0]
    assert all(np.abs(first[i] - first[j]).max() > 0.1 for i in range(4) for j in range(i))
    again = ws.DeepEnsemble(num_members=4, num_steps=1000).run(jax.random.key(0), posterior)
    assert np.array_equal(again.log_density, long.log_density)


def test_init_is_where_members_start():
    problem = linear()
    mode = ws.MAP(num_steps=3000).run(jax.random.key(0), problem.posterior)
    stay = ws.DeepEnsemble(num_members=3, num_steps=1, learning_rate=1e-6).run(
        jax.random.key(1), problem.posterior, init=mode
    )
    np.testing.assert_allclose(weights(stay)[:, 0], np.repeat(weights(mode)[0], 3, axis=0), atol=1e-4)


def test_settings_are_checked_and_divergence_is_named():
    with pytest.raises(InputError, match="`learning_rate` of MAP must be positive"):
        ws.MAP(learning_rate=0.0)
    with pytest.raises(InputError, match="`num_steps` of DeepEnsemble must be at least 1"):
        ws.DeepEnsemble(num_steps=0)
    explosive = ws.networks.Function(lambda key, x: jnp.ones((1, 1)), lambda params, x: x @ jnp.exp(jnp.exp(params)))
    model = ws.Model(explosive, ws.likelihoods.Gaussian(1.0), ws.priors.Normal(1.0))
    with pytest.raises(InputError, match="Training must end at a finite log density, got non-finite values in members"):
        ws.MAP(num_steps=50, learning_rate=50.0).run(
            jax.random.key(0), model.condition(ws.Batch(np.ones((2, 1)), 1e6 * np.ones(2)))
        )
