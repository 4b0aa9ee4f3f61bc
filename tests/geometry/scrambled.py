"""Draws of a small network from a known Gaussian, and the same draws with the hidden units in random order."""

import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from tests.symmetry.by_hand import mlp_symmetry

import weightscape as ws
from weightscape.symmetry import Symmetry

UNITS = 4


class Known(NamedTuple):
    """N(mean, diag(scale²)) over all parameters, draws from it, and equivalent draws in random order."""

    posterior: ws.Posterior
    symmetry: Symmetry
    mean: np.ndarray
    scale: np.ndarray
    draws: ws.Draws
    scrambled: ws.Draws


def known(*, inferred_noise: bool = False) -> Known:
    """Four chains of fifty draws of a tanh network with two inputs and four units, far apart for their spread."""
    return _known(inferred_noise, jax.config.read("jax_enable_x64"))


@functools.cache
def _known(inferred_noise: bool, x64: bool) -> Known:
    """Made once for each precision."""
    generator = np.random.default_rng(2)
    x = generator.normal(size=(12, 2))
    noise = ws.priors.Gamma(2.0, 2.0) if inferred_noise else 0.3
    model = ws.Model(ws.networks.MLP(hidden=(UNITS,)), ws.likelihoods.Gaussian(noise), ws.priors.Normal(1.0))
    posterior = model.condition(ws.Batch(x, np.tanh(x[:, 0])))
    like = posterior.start_position(jax.random.key(0))
    size = sum(leaf.size for leaf in jax.tree.leaves(like))
    mean, scale = 1.5 * generator.normal(size=size), np.geomspace(0.05, 0.2, size)
    numbers = mean + scale * generator.normal(size=(4, 50, size))
    draws = draws_at(posterior, numbers)
    symmetry = mlp_symmetry(posterior.constrain(like).network)
    keys = jax.random.split(jax.random.key(1), (4, 50))
    elements = jax.jit(jax.vmap(jax.vmap(symmetry.random)))(keys)
    return Known(posterior, symmetry, mean, scale, draws, symmetry.apply(draws, elements))


def draws_at(posterior: ws.Posterior, numbers: np.ndarray, **options) -> ws.Draws:
    """Draws whose positions are `numbers`, of shape (chain, draw, coordinate)."""
    leaves, structure = jax.tree.flatten(posterior.start_position(jax.random.key(0)))
    parts = np.split(numbers, np.cumsum([leaf.size for leaf in leaves])[:-1], axis=2)
    shaped = [jnp.asarray(p.reshape(*numbers.shape[:2], *leaf.shape)) for p, leaf in zip(parts, leaves, strict=True)]
    positions = jax.tree.unflatten(structure, shaped)
    params, log_density = _evaluate(posterior, positions)
    return ws.Draws(
        jax.tree.map(np.asarray, params),
        np.asarray(log_density),
        posterior.model,
        posterior.scaling,
        posterior.example,
        **options,
    )


@eqx.filter_jit
def _evaluate(posterior: ws.Posterior, positions):
    return jax.vmap(jax.vmap(lambda position: (posterior.constrain(position), posterior.log_density(position))))(
        positions
    )


def flat(position) -> np.ndarray:
    """All coordinates of one position."""
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(position)])
