"""Metropolis–Hastings against closed forms and full enumeration."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.known import assert_moments, linear, monte_carlo_error

import weightscape as ws
from weightscape.core import InputError


def test_random_walk_has_the_closed_form_moments():
    problem = linear()
    method = ws.MetropolisHastings(ws.RandomWalk(0.03), num_chains=16, num_draws=3000, num_warmup=3000, thin=30)
    draws = method.run(jax.random.key(0), problem.posterior, init=ws.MAP().run(jax.random.key(1), problem.posterior))
    assert_moments(
        np.asarray(draws.params.network["layer0"]["weight"], np.float64)[..., 0], problem.mean, problem.covariance
    )


@pytest.mark.parametrize(
    ("prior", "values"), [(ws.priors.signs(0.7), (-1.0, 1.0)), (ws.priors.ternary(0.5), (-1.0, 0.0, 1.0))]
)
def test_discrete_network_is_full_enumeration(prior, values):
    """A 2-2-1 tanh network without biases: six weights, every configuration counted."""
    generator = np.random.default_rng(3)
    x = generator.normal(size=(6, 2))
    y = np.tanh(x @ np.array([[1.0, -1.0], [1.0, 1.0]])) @ np.array([1.0, -1.0]) + 0.5 * generator.normal(size=6)
    model = ws.Model(ws.networks.MLP(hidden=(2,), bias=False), ws.likelihoods.Gaussian(0.8), prior)
    posterior = model.condition(ws.Batch(x, y))
    method = ws.MetropolisHastings(ws.Flip(values), num_chains=16, num_draws=4000, num_warmup=500, thin=6)
    draws = method.run(jax.random.key(0), posterior)
    first = np.asarray(draws.params.network["layer0"]["weight"]).reshape(16, -1, 4)
    weights = np.concatenate([first, np.asarray(draws.params.network["layer1"]["weight"])[..., 0]], axis=-1)
    configurations = np.array(list(itertools.product(values, repeat=6)))
    place = lambda w: ws.Parameters(
        {"layer0": {"weight": w[:4].reshape(2, 2)}, "layer1": {"weight": w[4:, None]}}, {}, ()
    )
    log_density = np.asarray(jax.vmap(lambda w: posterior.log_density(place(w)))(jnp.asarray(configurations)))
    probabilities = np.exp(log_density - log_density.max())
    probabilities /= probabilities.sum()
    codes = weights @ (len(values) ** np.arange(6.0))  # one number for each configuration
    likely = np.argsort(-probabilities)[:8]
    for configuration, probability in zip(configurations[likely], probabilities[likely], strict=True):
        hits = (codes == configuration @ (len(values) ** np.arange(6.0))).astype(float)
        assert abs(hits.mean() - probability) < 5 * monte_carlo_error(hits)
    mean = probabilities @ configurations
    assert np.all(np.abs(weights.mean(axis=(0, 1)) - mean) < 5 * monte_carlo_error(weights))
    second = np.einsum("k,ki,kj->ij", probabilities, configurations, configurations)
    products = weights[..., :, None] * weights[..., None, :]
    assert np.all(np.abs(products.mean(axis=(0, 1)) - second) < 5 * monte_carlo_error(products) + 1e-6)


def test_flips_reach_every_other_value_alike():
    flip, start = ws.Flip((-1.0, 0.0, 1.0)), ws.Parameters(jnp.zeros((4,)), {}, ())
    proposed = np.asarray(
        jax.vmap(lambda key: flip.propose(key, start).network)(jax.random.split(jax.random.key(0), 8000))
    )
    assert np.all((proposed != 0).sum(axis=1) == 1)
    for weight, value in itertools.product(range(4), (-1.0, 1.0)):
        assert abs(np.mean(proposed[:, weight] == value) - 1 / 8) < 5 * np.sqrt(1 / 8 * 7 / 8 / 8000)


def test_methods_that_need_a_gradient_refuse_discrete_weights():
    model = ws.Model(ws.networks.MLP(hidden=()), ws.likelihoods.Gaussian(1.0), ws.priors.signs())
    posterior = model.condition(ws.Batch(np.ones((2, 1)), np.ones(2)))
    for method in (ws.HMC(), ws.MAP(), ws.DeepEnsemble()):
        with pytest.raises(InputError, match="got discrete weights. Use MetropolisHastings with Flip proposals."):
            method.run(jax.random.key(0), posterior)
    with pytest.raises(InputError, match="`scale` of RandomWalk must be positive"):
        ws.RandomWalk(0.0)
