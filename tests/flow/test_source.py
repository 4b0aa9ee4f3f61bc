"""Sources: their densities are the prior's, for priors of every kind."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import weightscape as ws
from weightscape.core.checks import InputError
from weightscape.flow import PriorSource, WhitenedSource, source_of


def posterior(prior, likelihood=None):
    x = np.linspace(-1, 1, 6, dtype=np.float32)[:, None]
    likelihood = ws.likelihoods.Gaussian(scale=0.3) if likelihood is None else likelihood
    return ws.Model(ws.networks.MLP(hidden=(3,)), likelihood, prior).condition(ws.Batch(x, np.sin(3 * x)))


PRIORS = {
    "normal": (ws.priors.Normal(scale=0.7), True),
    "fan-in": (ws.priors.FanInNormal(scale=1.3), True),
    "student": (ws.priors.StudentT(degrees=3.0, scale=0.5), False),
    "laplace": (ws.priors.Laplace(scale=0.4), False),
}


@pytest.mark.parametrize("name", PRIORS)
def test_the_source_has_the_density_of_the_prior(name):
    prior, is_normal = PRIORS[name]
    target = posterior(prior)
    source = source_of(target)
    assert isinstance(source, WhitenedSource if is_normal else PriorSource)
    for seed in range(3):
        z = source.sample(jax.random.key(seed))
        position = source.position(z)
        ours = source.log_density(z) - source.log_volume
        # Sums of 10 terms in single precision.
        np.testing.assert_allclose(ours, target.log_prior(position), rtol=1e-5)
        np.testing.assert_allclose(source.vector(position), z, rtol=1e-6)


def test_whitened_draws_are_those_of_the_prior():
    target = posterior(ws.priors.Normal(scale=0.7))
    source, number = WhitenedSource.of(target), 20_000
    draws = jax.vmap(lambda key: PriorSource.of(target).vector(source.position(source.sample(key))))(
        jax.random.split(jax.random.key(0), number)
    )
    # Five standard errors of means and of covariances of normals.
    np.testing.assert_allclose(draws.mean(0), 0.0, atol=5 * 0.7 / number**0.5)
    np.testing.assert_allclose(np.cov(draws.T), 0.49 * np.eye(draws.shape[1]), atol=5 * 0.49 * (2 / number) ** 0.5)


def test_a_latent_noise_scale_is_not_whitened():
    target = posterior(ws.priors.Normal(scale=1.0), ws.likelihoods.Gaussian(scale=ws.priors.Gamma(0.5, 1.0)))
    assert isinstance(source_of(target), PriorSource)
    z = source_of(target).sample(jax.random.key(0))
    assert bool(jnp.isfinite(source_of(target).log_density(z)))


def test_other_priors_are_refused_by_name():
    with pytest.raises(InputError, match="independent normals around zero, got StudentT. Use PriorSource"):
        WhitenedSource.of(posterior(ws.priors.StudentT(degrees=3.0, scale=0.5)))
