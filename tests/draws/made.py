"""Draws made by hand, so that what they should say is known."""

import jax
import jax.numpy as jnp
import numpy as np

import weightscape as ws
from weightscape.core.facts import Facts


def regression_data() -> ws.Dataset:
    """60 points with two inputs of different scales, standardised for the network."""
    generator = np.random.default_rng(3)
    x = generator.normal(size=(60, 2)) * [1.0, 20.0] + [0.0, 5.0]
    return ws.data.from_arrays(x, 100 + x @ np.array([2.0, 0.3]) + generator.normal(size=60), task="regression")


def classification_data() -> ws.Dataset:
    """60 points of three classes."""
    generator = np.random.default_rng(4)
    x = generator.normal(size=(60, 2))
    return ws.data.from_arrays(x, np.digitize(x[:, 0], [-0.4, 0.4]), task="classification")


def wandering(num_chains: int, num_draws: int, size: int, *, memory: float = 0.6, seed: int = 0) -> np.ndarray:
    """Autoregressive chains of shape (chain, draw, size), stationary with unit variance."""
    noise = np.random.default_rng(seed).normal(size=(num_chains, num_draws, size))
    values = noise.copy()
    for i in range(1, num_draws):
        values[:, i] = memory * values[:, i - 1] + np.sqrt(1 - memory**2) * noise[:, i]
    return values


def made_draws(model: ws.Model, data: ws.Dataset, numbers: np.ndarray, **options) -> ws.Draws:
    """Draws whose weights are `numbers` of shape (chain, draw, weight)."""
    posterior = model.condition(data.train)
    like = posterior.constrain(posterior.start_position(jax.random.key(0)))
    leaves, structure = jax.tree.flatten(like)
    ends = np.cumsum([leaf.size for leaf in leaves])
    assert numbers.shape[2] == ends[-1]
    parts = np.split(numbers, ends[:-1], axis=2)
    shaped = [
        np.asarray(part, np.float32).reshape(*numbers.shape[:2], *leaf.shape)
        for part, leaf in zip(parts, leaves, strict=True)
    ]
    params = jax.tree.unflatten(structure, shaped)
    log_density = np.asarray(-0.5 * np.sum(numbers**2, axis=2), np.float32)
    facts = options.pop("facts", Facts(seconds=2.0))
    return ws.Draws(params, log_density, posterior.model, posterior.scaling, posterior.example, facts=facts, **options)


def linear_regression(num_chains: int = 4, num_draws: int = 60, **options) -> tuple[ws.Draws, ws.Dataset]:
    """A linear model without a bias, its noise scale 0.5."""
    data = regression_data()
    model = ws.Model(ws.networks.MLP(hidden=(), bias=False), ws.likelihoods.Gaussian(0.5), ws.priors.Normal())
    return made_draws(model, data, wandering(num_chains, num_draws, 2, **options)), data


def linear_classification(num_chains: int = 4, num_draws: int = 60) -> tuple[ws.Draws, ws.Dataset]:
    """A linear model of three logits, with biases."""
    data = classification_data()
    model = ws.Model(ws.networks.MLP(hidden=()), ws.likelihoods.Categorical(3), ws.priors.Normal())
    return made_draws(model, data, wandering(num_chains, num_draws, 9)), data


def weight_matrix(draws: ws.Draws) -> np.ndarray:
    """The one weight matrix of a linear model, in double precision."""
    (weight,) = [leaf for leaf in jax.tree.leaves(draws.params.network) if leaf.ndim == 4]
    return np.asarray(weight, np.float64)


def shift_logits(draws: ws.Draws, shift: np.ndarray) -> ws.Draws:
    """The same class probabilities with `shift` (chain, draw) added to every logit."""
    params = jax.tree.map(lambda leaf: leaf + jnp.asarray(shift)[..., None] if leaf.ndim == 3 else leaf, draws.params)
    return ws.Draws(params, draws.log_density, draws.model, draws.scaling, draws.example)
