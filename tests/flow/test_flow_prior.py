"""Flows as priors: a flow whose density is a known normal makes the posterior of a linear model a known normal."""

import dataclasses

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.flow import gaussians, tiny, von_mises
from tests.flow.linear_flows import NormalField, problem

import weightscape as ws
from weightscape.core import InputError
from weightscape.core.facts import Facts
from weightscape.draws import Header
from weightscape.flow import (
    Euclidean,
    Exact,
    FixedSteps,
    ForgetfulSteps,
    Geometric,
    Hutchinson,
    OfVelocity,
    Straight,
    WhitenedSource,
    prior_of,
)
from weightscape.flow.objective import Objective

pytestmark = pytest.mark.usefixtures("x64")
KEY = jax.random.key(0)
SCALES = np.array([0.5, 2.0, 1.0])
MEAN, COVARIANCE = gaussians.MEAN, gaussians.COVARIANCE


def flow(**changes):
    """A flow over populations whose density over weights is N(MEAN, COVARIANCE), from a source of three sizes."""
    posterior = problem().posterior
    source = dataclasses.replace(WhitenedSource.of(posterior), scale=jnp.asarray(SCALES))
    field = NormalField.of(MEAN / SCALES, COVARIANCE / np.outer(SCALES, SCALES))
    made = ws.PopulationFlow(
        Header.of(posterior), posterior, None, Facts(), field, Objective(Straight(), OfVelocity()), source,
        jnp.full(3, jnp.inf), FixedSteps(200, diffrax.Bosh3(), num_nodes=10), Exact(),
        ws.PopulationMatching(Euclidean()),
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def test_the_posterior_under_a_flow_is_the_known_one():
    """log p(D, θ) and its gradient, P (m − θ) with the known precision P and mean m; errors of the solver are 1e-6."""
    known = problem()
    model = ws.Model(ws.networks.MLP(hidden=(), bias=False), ws.likelihoods.Gaussian(known.noise), prior_of(flow()))
    posterior = model.condition(ws.Batch(known.x, known.y))
    precision = known.x.T @ known.x / known.noise**2 + np.linalg.inv(COVARIANCE)
    mean = np.linalg.solve(precision, known.x.T @ known.y / known.noise**2 + np.linalg.solve(COVARIANCE, MEAN))
    weights = np.stack([mean, mean + np.array([0.3, -0.2, 0.1]), MEAN])
    shaped = lambda w: posterior.start_position(KEY)._replace(network={"layer0": {"weight": w[:, None]}})
    both = eqx.filter_jit(jax.vmap(jax.value_and_grad(lambda w: posterior.log_density(shaped(w)))))
    log_density, gradient = both(jnp.asarray(weights))
    noise = known.y - weights @ known.x.T
    log_likelihood = np.sum(-0.5 * (noise / known.noise) ** 2 - np.log(known.noise * np.sqrt(2 * np.pi)), axis=1)
    np.testing.assert_allclose(log_density, log_likelihood + gaussians.log_normal(weights), rtol=1e-6)
    np.testing.assert_allclose(gradient, (mean - weights) @ precision, atol=1e-4)
    assert np.abs(gradient[1:]).max() > 1


@pytest.mark.slow
def test_gradients_and_draws_of_a_metanets_prior_are_those_of_its_density():
    """By central differences of 1e-4, whose error is some 1e-8 of third derivatives."""
    made = tiny.shaken(tiny.untrained(tiny.METHOD))
    prior, layout = prior_of(made), Header.of(made.posterior).layout()
    like = made.posterior.start_position(KEY)
    density = eqx.filter_jit(lambda z: prior.log_density(layout.unflatten(z).network))
    z, direction = layout.flatten(like), jnp.cos(jnp.arange(layout.size, dtype=float))
    slope = jnp.sum(jax.grad(density)(z) * direction)
    ahead, behind = (density(z + step * direction) for step in (1e-4, -1e-4))
    np.testing.assert_allclose(slope, (ahead - behind) / 2e-4, rtol=1e-5)
    np.testing.assert_allclose(density(z), made.log_density(like), rtol=1e-9)
    assert bool(eqx.tree_equal(prior.sample(KEY, like.network), made.sample_position(KEY).network))


def test_flows_without_a_density_over_weights_are_no_priors():
    with pytest.raises(InputError, match="must have a density over all weights, got one of the Geometric geometry"):
        prior_of(flow(method=ws.PopulationMatching(Geometric())))
    with pytest.raises(InputError, match="must have an exact divergence, got Hutchinson"):
        prior_of(flow(divergence=Hutchinson()))
    with pytest.raises(InputError, match="must be solved without noise, got one with ForgetfulSteps"):
        prior_of(flow(solver=ForgetfulSteps()))
    with pytest.raises(TypeError, match="must be a Flow or a PopulationFlow, got MAP"):
        prior_of(ws.MAP())
    noisy = ws.Model(ws.networks.MLP(hidden=(), bias=False), ws.likelihoods.Gaussian(ws.priors.Gamma(0.5, 1.0)),
                     ws.priors.Normal(1.0)).condition(ws.Batch(problem().x, problem().y))  # fmt: skip
    source = WhitenedSource.around(noisy)
    with pytest.raises(InputError, match="must be one over weights alone, got one with more"):
        prior_of(flow(header=Header.of(noisy), source=source))
    with pytest.raises(InputError, match=r"must have its shapes \[\(3, 1\)\], got \[\(2,\)"):
        prior_of(flow()).log_density(von_mises.posterior().start_position(KEY).network)
