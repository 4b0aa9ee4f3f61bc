"""Automatic relevance end to end, learned priors, and hyper-parameters that can be differentiated."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.known import linear

import weightscape as ws
from weightscape.core import InputError
from weightscape.report import plot_relevance

PATTERN = "layer0/weight"


def relevance_problem():
    """Six inputs, of which the first two matter."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(80, 6))
    y = np.sin(1.5 * x[:, 0]) + 0.8 * x[:, 1] + 0.1 * generator.normal(size=80)
    prior = ws.priors.ByPath(
        {PATTERN: ws.priors.automatic_relevance(ws.priors.HalfNormal(1.0)), "*": ws.priors.Normal(1.0)}
    )
    model = ws.Model(ws.networks.MLP(hidden=(8,)), ws.likelihoods.Gaussian(0.1), prior)
    return model.condition(ws.Batch(x, y))


@pytest.fixture(scope="module")
def relevance():
    posterior = relevance_problem()
    start = ws.DeepEnsemble(num_members=8, num_steps=1500).run(jax.random.key(0), posterior)
    method = ws.HMC(num_chains=8, num_draws=300, num_warmup=600, num_leapfrog=40)
    draws = method.run(jax.random.key(1), posterior, init=start)
    return draws, np.asarray(draws.flat().params.prior[PATTERN][PATTERN])[:, :, 0]


def test_scales_separate_what_matters_from_what_does_not(relevance):
    _, scales = relevance
    # Every posterior median of a relevant input lies above the 95 % quantile of every irrelevant one.
    assert np.median(scales[:, :2], axis=0).min() > np.quantile(scales[:, 2:], 0.95, axis=0).max()


def test_relevance_is_plotted_in_order(relevance):
    _, scales = relevance
    figure = plot_relevance(scales, tuple(f"input {i}" for i in range(6)))
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert set(labels[-2:]) == {"input 0", "input 1"}
    with pytest.raises(InputError, match="one for each input, got 5 names for 6 inputs"):
        plot_relevance(scales, ("a",) * 5)


def test_latent_scales_are_stored_with_the_draws(relevance, tmp_path):
    draws, _ = relevance
    draws.save(tmp_path / "run")
    loaded = ws.Draws.load(tmp_path / "run")
    for one, other in zip(jax.tree.leaves(draws.params), jax.tree.leaves(loaded.params), strict=True):
        assert np.array_equal(one, other)
    again = jax.vmap(jax.vmap(relevance_problem().log_density))(loaded.positions())
    np.testing.assert_allclose(again, draws.log_density, rtol=1e-3)


class Learned(eqx.Module):
    """A density with numbers of its own."""

    scale: jax.Array

    def log_density(self, params):
        return ws.priors.Normal(self.scale).log_density(params)

    def sample(self, key, params_like):
        return ws.priors.Normal(self.scale).sample(key, params_like)


def test_a_fitted_prior_is_its_density():
    learned = Learned(jnp.asarray(0.7))
    prior, plain = ws.priors.Fitted(learned.log_density, learned.sample), ws.priors.Normal(0.7)
    params = {"w": jnp.arange(3.0)}
    np.testing.assert_allclose(prior.log_density(params), plain.log_density(params))
    assert np.array_equal(prior.sample(jax.random.key(0), params)["w"], plain.sample(jax.random.key(0), params)["w"])
    problem = linear()
    with_fitted = dataclasses.replace(problem.posterior.model, prior=prior)
    draws = ws.MAP().run(jax.random.key(0), with_fitted.condition(ws.Batch(problem.x, problem.y)))
    expected = linear(prior_scale=0.7).mean
    np.testing.assert_allclose(draws.params.network["layer0"]["weight"][0, 0, :, 0], expected, atol=1e-4)
    gradient = eqx.filter_grad(lambda prior: prior.log_density(params))(prior)
    assert any(np.any(np.asarray(leaf) != 0) for leaf in jax.tree.leaves(gradient))


def log_evidence(prior, x, y, noise):
    """log p(y) of the linear model, whose prior variance is the prior's own."""
    covariance = noise**2 * jnp.eye(len(y)) + prior.scale**2 * x @ x.T
    return jax.scipy.stats.multivariate_normal.logpdf(y, jnp.zeros(len(y)), covariance)


def test_hyper_parameters_are_leaves_that_an_evidence_can_be_differentiated_in(x64):
    problem = linear(prior_scale=1.0)
    x, y = jnp.asarray(problem.x), jnp.asarray(problem.y)
    prior = ws.priors.Normal(jnp.asarray(1.0))
    gradient = eqx.filter_grad(log_evidence)(prior, x, y, problem.noise)
    above, below = (linear(prior_scale=1.0 + step).log_evidence for step in (1e-4, -1e-4))
    np.testing.assert_allclose(gradient.scale, (above - below) / 2e-4, rtol=1e-5)


def test_densities_can_be_differentiated_in_the_prior(x64):
    problem = linear()
    position = ws.Parameters({"layer0": {"weight": jnp.asarray([[1.0], [-2.0], [0.5]])}}, {}, ())
    gradient = eqx.filter_grad(lambda posterior: posterior.log_density(position))(problem.posterior)
    # d/dσ Σ log N(w; 0, σ²) = Σ w²/σ³ − d/σ at σ = 1.
    np.testing.assert_allclose(gradient.model.prior.scale, 1.0 + 4.0 + 0.25 - 3, rtol=1e-6)


def test_filters_and_gates_share_a_scale():
    """Structured priors are a choice of leaves and axes: one τ for each filter, one for each gate of an LSTM."""
    scale = ws.priors.HalfNormal(1.0)
    shapes = lambda network, prior, x: jax.tree.map(
        jnp.shape, prior.coordinates(network.init(jax.random.key(0), x)).latent
    )
    filters = ws.priors.ByPath({"conv*/kernel": ws.priors.Hierarchical(scale, along=(-1,)), "*": ws.priors.Normal()})
    network = ws.networks.ConvNet(channels=(2, 3), hidden=(4,), outputs=2)
    latent = shapes(network, filters, jnp.zeros((1, 8, 8, 1)))
    assert latent == {"conv*/kernel": {"conv0/kernel": (1, 1, 1, 2), "conv1/kernel": (1, 1, 1, 3)}}
    gates = ws.priors.ByPath({"lstm/*_weight": ws.priors.Hierarchical(scale, along=(1,)), "*": ws.priors.Normal()})
    latent = shapes(ws.networks.LSTM(hidden=3, outputs=1), gates, jnp.zeros((1, 5, 2)))
    assert all(shape == (1, 4, 1) for shape in latent["lstm/*_weight"].values())
