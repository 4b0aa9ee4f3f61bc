"""What a generator of networks must beat: copies with noise, and averages of networks.

    noisy copy   θ_i + σ s ξ,        s the standard deviation of each leaf over the networks, ξ ~ N(0, 1)
    average      (1/k) Σ_{i in S} θ_i,      S a random set of k networks

A noisy copy is as good as its original and memorised by construction; an average is new, and good only where the
networks lie in one place: re-base them first. Both are Draws of one chain without a density.
"""

import dataclasses

import jax
import numpy as np

from weightscape.core import PRNGKey
from weightscape.core.checks import require, require_count, require_positive
from weightscape.draws import Draws, Health
from weightscape.draws.draws import Host


def noisy_copies(key: PRNGKey, draws: Draws, num_networks: int, *, noise: float = 0.1) -> Draws:
    """Networks drawn with replacement, with noise of `noise` standard deviations of each leaf."""
    require_count("`num_networks` of noisy_copies", num_networks)
    require_positive("`noise` of noisy_copies", noise)
    key_rows, key_noise = jax.random.split(key)
    rows = np.asarray(jax.random.randint(key_rows, (num_networks,), 0, len(draws)))
    keys = iter(jax.random.split(key_noise, len(jax.tree.leaves(draws.params))))

    def copied(leaf: Host) -> np.ndarray:
        networks = _flat(leaf)
        shaken = jax.random.normal(next(keys), (num_networks, *networks.shape[1:]), networks.dtype)
        return np.asarray(networks[rows] + noise * np.std(networks) * np.asarray(shaken))[None]

    return _as_draws(draws, jax.tree.map(copied, draws.params), num_networks)


def averages(key: PRNGKey, draws: Draws, num_networks: int, *, num_averaged: int = 2) -> Draws:
    """Means, weight by weight, of `num_averaged` different networks each."""
    require_count("`num_networks` of averages", num_networks)
    require_count("`num_averaged` of averages", num_averaged)
    remedy = "Average fewer."
    require(num_averaged <= len(draws), f"At most {len(draws)} networks can be averaged", num_averaged, remedy)
    pick = lambda key: jax.random.choice(key, len(draws), (num_averaged,), replace=False)
    rows = np.asarray(jax.vmap(pick)(jax.random.split(key, num_networks)))
    mean = lambda leaf: np.mean(_flat(leaf)[rows], axis=1)[None]
    return _as_draws(draws, jax.tree.map(mean, draws.params), num_networks)


def _flat(leaf: Host) -> np.ndarray:
    return np.asarray(leaf).reshape(-1, *np.shape(leaf)[2:])


def _as_draws(draws: Draws, params: object, num_networks: int) -> Draws:
    unknown = np.full((1, num_networks), np.nan)
    bare = {"info": {}, "log_weights": None, "log_proposal": None, "health": Health(1)}
    return dataclasses.replace(draws, params=params, log_density=unknown, **bare)
