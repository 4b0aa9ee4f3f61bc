"""Laws that every prior obeys."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import stats
from tests.laws import PAIR, PRIORS, SCALES

from weightscape import priors
from weightscape.core import decode, encode
from weightscape.priors import Coordinates

every_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
every_scale = pytest.mark.parametrize(("prior", "truth"), SCALES.values(), ids=SCALES)


def pair():
    return jax.tree.map(jnp.asarray, PAIR)


def flat_density(prior, like):
    """log p over a flat vector of coordinates, with the Jacobian, and the way from trees to it."""
    example = prior.sample_coordinates(jax.random.key(0), like)
    _, unravel = ravel_pytree(tuple(example))

    def log_density(flat):
        placed = prior.constrain(Coordinates(*unravel(flat)))
        return prior.log_density(placed.params, placed.latent) + placed.log_jacobian

    return log_density, unravel


def flat_samples(prior, like, num, seed=0):
    sample = lambda key: ravel_pytree(tuple(prior.sample_coordinates(key, like)))[0]
    return jax.vmap(sample)(jax.random.split(jax.random.key(seed), num))


@every_prior
def test_samples_obey_steins_identity(prior, x64):
    """E[z_j ∂_k log p(z)] = −1 where j = k and 0 elsewhere, and E[∂_k log p] = 0: density and sampler agree."""
    log_density, _ = flat_density(prior, pair())
    samples = flat_samples(prior, pair(), 40_000)
    scores = np.asarray(jax.vmap(jax.grad(log_density))(samples))
    samples = np.asarray(samples)
    assert np.all(np.isfinite(scores))
    assert np.all(np.abs(scores.mean(axis=0)) < 5 * scores.std(axis=0) / np.sqrt(len(scores)))
    products = samples[:, :, None] * scores[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(products))
    assert np.all(np.abs(products.mean(axis=0) + np.eye(samples.shape[1])) < 5 * error)
    assert np.all(error < 0.1)


@every_prior
def test_constrain_is_inverted_and_its_jacobian_is_right(prior, x64):
    _, unravel = flat_density(prior, pair())
    flat = flat_samples(prior, pair(), 1, seed=1)[0]
    placed = prior.constrain(Coordinates(*unravel(flat)))
    back = prior.coordinates(placed.params, placed.latent)
    np.testing.assert_allclose(ravel_pytree(tuple(back))[0], flat, rtol=1e-9, atol=1e-12)
    image = lambda z: ravel_pytree(prior.constrain(Coordinates(*unravel(z)))[:2])[0]
    np.testing.assert_allclose(placed.log_jacobian, np.linalg.slogdet(jax.jacfwd(image)(flat))[1], atol=1e-9)


@every_prior
def test_both_ways_of_sampling_agree(prior, x64):
    keys = jax.random.split(jax.random.key(2), 4000)
    direct = jax.vmap(lambda key: prior.sample(key, pair())["a"])(keys[:2000])
    placed = jax.vmap(lambda key: prior.constrain(prior.sample_coordinates(key, pair())).params["a"])(keys[2000:])
    assert stats.ks_2samp(np.asarray(direct), np.asarray(placed)).pvalue > 1e-4


@every_prior
def test_a_start_without_latents_has_finite_density(prior, x64):
    log_density, _ = flat_density(prior, pair())
    start = prior.coordinates(jax.tree.map(lambda leaf: leaf + 0.3, pair()))
    placed = prior.constrain(start)
    np.testing.assert_allclose(placed.params["a"], 0.3, rtol=1e-12)
    assert np.isfinite(log_density(ravel_pytree(tuple(start))[0]))


@every_prior
def test_survives_as_data(prior):
    encoded = encode(prior)
    back = decode(json.loads(json.dumps(encoded.tree)), encoded.arrays)
    assert jax.tree.structure(back) == jax.tree.structure(prior)
    for one, other in zip(jax.tree.leaves(back), jax.tree.leaves(prior), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("name", ["normal", "fan_in_normal", "laplace", "student_t", "scale_mixture"])
def test_density_of_one_weight_integrates_to_one(name, x64):
    # Substituting θ = sinh(u) reaches the tails: beyond |u| = 16 a t with 3 degrees holds less than 1e-18.
    grid = jnp.linspace(-16.0, 16.0, 200_001)
    density = jax.vmap(lambda u: jnp.exp(PRIORS[name].log_density(jnp.sinh(u))) * jnp.cosh(u))(grid)
    assert abs(float(jnp.trapezoid(density, grid)) - 1) < 1e-6


@every_scale
def test_scale_densities_are_scipys(prior, truth, x64):
    points = truth.ppf(np.linspace(0.01, 0.99, 25))
    ours = jax.vmap(prior.log_density)(jnp.asarray(points))
    np.testing.assert_allclose(ours, truth.logpdf(points), rtol=1e-6, atol=1e-6)  # its parameters are float32
    samples = np.asarray(
        jax.vmap(lambda key: prior.sample(key, jnp.zeros(())))(jax.random.split(jax.random.key(0), 5000))
    )
    assert stats.kstest(samples, truth.cdf).pvalue > 1e-4


@every_scale
def test_root_is_the_density_of_a_square_root(prior, truth, x64):
    points = np.sqrt(truth.ppf(np.linspace(0.05, 0.95, 9)))
    ours = jax.vmap(priors.Root(prior).log_density)(jnp.asarray(points))
    np.testing.assert_allclose(ours, truth.logpdf(points**2) + np.log(2 * points), rtol=1e-6, atol=1e-6)
