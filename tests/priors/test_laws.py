"""Laws that every prior obeys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from tests.laws import PRIORS

import weightscape as ws
from weightscape.core import InputError
from weightscape.priors import Coordinates

TREE = {"weight": jnp.zeros((3, 2)), "bias": jnp.zeros((2,)), "scalar": jnp.zeros(())}

every_prior = pytest.mark.parametrize(("prior", "std"), PRIORS.values(), ids=PRIORS)


@every_prior
def test_density_integrates_to_one(prior, std, x64):
    # Over positions, where every prior is smooth; the range holds all but 1e-10 of the mass of each prior above.
    grid = jnp.linspace(-60.0, 20.0, 200_001)

    def density(position):
        placed = prior.constrain(Coordinates(position, ()))
        return jnp.exp(prior.log_density(placed.params) + placed.log_jacobian)

    assert abs(float(jnp.trapezoid(jax.vmap(density)(grid), grid)) - 1) < 1e-6


@every_prior
def test_samples_have_the_moments_of_the_density(prior, std):
    keys = jax.random.split(jax.random.key(0), 40_000)
    samples = np.asarray(jax.vmap(lambda key: prior.sample(key, jnp.zeros(())))(keys), np.float64)
    coordinates = np.asarray(jax.vmap(lambda key: prior.sample_coordinates(key, jnp.zeros(())).params)(keys))
    placed = np.asarray(jax.vmap(lambda z: prior.constrain(Coordinates(z, ())).params)(coordinates), np.float64)
    for drawn in (samples, placed):
        fourth = np.mean((drawn - drawn.mean()) ** 4)
        error = np.sqrt((fourth - std**4) / len(drawn))  # of the sample variance
        assert abs(drawn.var() - std**2) < 5 * error


@every_prior
def test_log_density_is_that_of_the_samples(prior, std):
    """E[d/dz (log p(z) φ(z) e^...)]: a score has mean zero, which fails where density and sampler disagree."""
    keys = jax.random.split(jax.random.key(1), 40_000)
    coordinates = jax.vmap(lambda key: prior.sample_coordinates(key, jnp.zeros(())).params)(keys)

    def log_density(z):
        placed = prior.constrain(Coordinates(z, ()))
        return prior.log_density(placed.params) + placed.log_jacobian

    scores = np.asarray(jax.vmap(jax.grad(log_density))(coordinates), np.float64)
    assert abs(scores.mean()) < 5 * scores.std() / np.sqrt(len(scores))
    stein = scores * np.asarray(coordinates, np.float64) + 1  # Stein's identity: E[z ∂ log p] = −1
    assert abs(stein.mean()) < 5 * stein.std() / np.sqrt(len(stein))


@every_prior
def test_constrain_is_inverted_and_its_jacobian_is_right(prior, std, x64):
    position = jax.tree.map(lambda leaf: jnp.linspace(-0.5, 0.9, leaf.size).reshape(leaf.shape), TREE)
    placed = prior.constrain(Coordinates(position, ()))
    back = prior.coordinates(placed.params).params
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), back, position)
    flat, unravel = ravel_pytree(position)
    jacobian = jax.jacfwd(lambda z: ravel_pytree(prior.constrain(Coordinates(unravel(z), ())).params)[0])(flat)
    np.testing.assert_allclose(placed.log_jacobian, np.linalg.slogdet(jacobian)[1], atol=1e-12)


@every_prior
def test_leaves_are_independent(prior, std):
    keys = jax.random.split(jax.random.key(2), 20_000)
    trees = jax.vmap(lambda key: prior.sample(key, TREE))(keys)
    flat = np.concatenate([np.asarray(leaf).reshape(len(keys), -1) for leaf in jax.tree.leaves(trees)], axis=1)
    correlation = np.corrcoef(flat.T) - np.eye(flat.shape[1])
    assert np.abs(correlation).max() < 6 / np.sqrt(len(keys))
    one = jax.tree.map(lambda leaf: leaf[0], trees)
    parts = [prior.log_density(one[name]) for name in one]
    np.testing.assert_allclose(prior.log_density(one), sum(parts), rtol=1e-5)


def test_scales_by_leaf_are_a_prefix_of_the_tree():
    prior = ws.priors.Normal({"a": 2.0, "b": {"weight": 0.5, "bias": 3.0}})
    params = {"a": {"w": jnp.ones((2,))}, "b": {"weight": jnp.ones(()), "bias": jnp.ones(())}}
    alone = ws.priors.Normal(2.0).log_density(params["a"]) + ws.priors.Normal(0.5).log_density(jnp.ones(()))
    np.testing.assert_allclose(prior.log_density(params), alone + ws.priors.Normal(3.0).log_density(jnp.ones(())))
    with pytest.raises(InputError, match="prefix of the parameter tree"):
        prior.log_density({"c": jnp.ones(())})


def test_fan_in_divides_the_variance_by_the_inputs():
    prior = ws.priors.FanInNormal(scale=2.0)
    kernel = prior.sample(jax.random.key(0), jnp.zeros((3, 3, 8, 5000)))
    # 360,000 entries: the error of the variance is σ² √(2/n).
    assert abs(float(kernel.var()) - 4 / 72) < 5 * (4 / 72) * np.sqrt(2 / kernel.size)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ws.priors.Normal(-1.0),
        lambda: ws.priors.Gamma(0.0),
        lambda: ws.priors.Normal({"a": 1.0, "b": float("nan")}),
    ],
)
def test_scales_must_be_positive(make):
    with pytest.raises(InputError, match="must be positive and finite"):
        make()
