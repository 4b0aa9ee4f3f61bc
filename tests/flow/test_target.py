"""A posterior relative to its source: values and gradients, against linear regression in closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.flow.gaussians import log_normal
from tests.known import linear

import weightscape as ws
from weightscape.flow import PriorSource, WhitenedSource
from weightscape.flow.target import Target

pytestmark = pytest.mark.usefixtures("x64")
Z = np.random.default_rng(2).normal(size=(300, 3))
# Sums of 40 terms, each a product of a few numbers of order ten.
ROUNDING = {"rtol": 1e-10, "atol": 1e-10}


def slopes(problem, weights):
    """∇ log p(D | w) = Xᵀ(y − X w) / σ², one row for each w."""
    return (problem.y[None] - weights @ problem.x.T) @ problem.x / problem.noise**2


def student(problem, degrees=3.0, scale=0.5):
    network, likelihood = ws.networks.MLP(hidden=(), bias=False), ws.likelihoods.Gaussian(problem.noise)
    model = ws.Model(network, likelihood, ws.priors.StudentT(degrees=degrees, scale=scale))
    return model.condition(ws.Batch(problem.x, problem.y))


def test_with_a_normal_prior_it_is_the_likelihood():
    problem = linear(prior_scale=0.7)
    target = Target(problem.posterior, WhitenedSource.of(problem.posterior))
    np.testing.assert_allclose(target.source.scale, 0.7, rtol=1e-12)
    for z in Z[:3]:
        np.testing.assert_allclose(target.gradient(jnp.asarray(z)), 0.7 * slopes(problem, 0.7 * z[None])[0], **ROUNDING)


def test_the_density_is_that_of_vectors():
    """log p(D, θ) dθ/dz with θ = 0.7 z: a normal around the mean, times the evidence."""
    problem = linear(prior_scale=0.7)
    target = Target(problem.posterior, WhitenedSource.of(problem.posterior))
    for z in Z[:3]:
        density = log_normal(0.7 * z, problem.mean, problem.covariance) + problem.log_evidence + 3 * np.log(0.7)
        np.testing.assert_allclose(target.log_density(jnp.asarray(z)), density, rtol=1e-10)


def test_another_prior_is_part_of_what_is_relative_to_a_normal():
    problem = linear()
    posterior = student(problem)
    source = WhitenedSource.around(posterior)
    scale = np.asarray(source.scale)
    # The median of |t₃| is 0.765, that of a normal 0.674; 768 sizes tell it to 5%.
    np.testing.assert_allclose(scale, 0.5 * 0.7649 / 0.6745, rtol=0.25)
    weights = Z[:3] * scale[None]
    prior = -4.0 * weights / (3.0 * 0.25 + weights**2)
    expected = scale[None] * (slopes(problem, weights) + prior) + Z[:3]
    ours = jax.vmap(Target(posterior, source).gradient)(jnp.asarray(Z[:3]))
    np.testing.assert_allclose(ours, expected, **ROUNDING)
    of_prior = jax.vmap(Target(posterior, PriorSource.of(posterior)).gradient)(jnp.asarray(weights))
    np.testing.assert_allclose(of_prior, slopes(problem, weights), **ROUNDING)


def test_powers_of_a_tempered_posterior_count():
    problem = linear(prior_scale=0.7)
    posterior = problem.posterior.tempered(likelihood=0.3, prior=0.5)
    target = Target(posterior, WhitenedSource.of(posterior))
    # Half of the prior's own gradient −z is missing from the density, and all of it from what it is relative to.
    expected = 0.3 * 0.7 * slopes(problem, 0.7 * Z[:3]) + 0.5 * Z[:3]
    np.testing.assert_allclose(jax.vmap(target.gradient)(jnp.asarray(Z[:3])), expected, **ROUNDING)


@pytest.mark.parametrize("count", [1, 256, 300])
def test_gradients_of_many_are_those_of_each(count):
    problem = linear(prior_scale=0.7)
    target = Target(problem.posterior, WhitenedSource.of(problem.posterior))
    ours = target.gradients(Z[:count])
    assert isinstance(ours, np.ndarray)
    np.testing.assert_allclose(ours, 0.7 * slopes(problem, 0.7 * Z[:count]), **ROUNDING)
