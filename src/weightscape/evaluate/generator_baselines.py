"""What a generator of networks must beat: copies with noise, and averages of networks.

    noisy copy   θ_i + σ s ξ,        s the standard deviation of each leaf of weights over the networks, ξ ~ N(0, 1)
    average      (1/k) Σ_{i in S} θ_i,      S a random set of k networks
    blend        (1 − s) θ_i + s θ_j,       i ≠ j random; a share s of 1/2 is the average of two

A noisy copy is as good as its original and memorised by construction; an average is new, and good only where the
networks lie in one place: re-base them first. Noise and shares say how far off these are; compare a generator with
those as far off as its own networks. All are Draws of one chain without a density.

Noise is for weights. Scales that a likelihood or a prior infers must stay positive, so copies keep those of their
originals; means of positive numbers are positive.
"""

import dataclasses

import jax
import numpy as np
from jaxtyping import Int

from weightscape.core import PRNGKey
from weightscape.core.checks import require, require_count, require_fraction, require_positive
from weightscape.draws import Draws, Health
from weightscape.draws.draws import Host


def noisy_copies(key: PRNGKey, draws: Draws, num_networks: int, *, noise: float = 0.1) -> Draws:
    """Networks drawn with replacement, with noise of `noise` standard deviations of each leaf of their weights."""
    require_count("`num_networks` of noisy_copies", num_networks)
    require_positive("`noise` of noisy_copies", noise)
    key_rows, key_noise = jax.random.split(key)
    rows = np.asarray(jax.random.randint(key_rows, (num_networks,), 0, len(draws)))
    keys = iter(jax.random.split(key_noise, len(jax.tree.leaves(draws.params.network))))

    def shaken(leaf: Host) -> np.ndarray:
        networks = _flat(leaf)
        drawn = jax.random.normal(next(keys), (num_networks, *networks.shape[1:]), networks.dtype)
        return np.asarray(networks[rows] + noise * np.std(networks) * np.asarray(drawn))[None]

    copies = jax.tree.map(lambda leaf: _flat(leaf)[rows][None], draws.params)
    shaken_copies = copies._replace(network=jax.tree.map(shaken, draws.params.network))
    return _as_draws(draws, shaken_copies, num_networks)


def averages(key: PRNGKey, draws: Draws, num_networks: int, *, num_averaged: int = 2) -> Draws:
    """Means, weight by weight, of `num_averaged` different networks each."""
    require_count("`num_networks` of averages", num_networks)
    require_count("`num_averaged` of averages", num_averaged)
    remedy = "Average fewer."
    require(num_averaged <= len(draws), f"At most {len(draws)} networks can be averaged", num_averaged, remedy)
    rows = _different(key, len(draws), (num_networks, num_averaged))
    mean = lambda leaf: np.mean(_flat(leaf)[rows], axis=1)[None]
    return _as_draws(draws, jax.tree.map(mean, draws.params), num_networks)


def blends(key: PRNGKey, draws: Draws, num_networks: int, *, share: float = 0.5) -> Draws:
    """Networks with a `share` of another one, weight by weight."""
    require_count("`num_networks` of blends", num_networks)
    require_fraction("`share` of blends", share)
    require(len(draws) > 1, "At least 2 networks must be there to be blended", len(draws), "Pass more.")
    one, other = _different(key, len(draws), (num_networks, 2)).T

    def blended(leaf: Host) -> np.ndarray:
        networks = _flat(leaf)
        return (networks[one] + np.asarray(share, networks.dtype) * (networks[other] - networks[one]))[None]

    return _as_draws(draws, jax.tree.map(blended, draws.params), num_networks)


def _different(key: PRNGKey, count: int, shape: tuple[int, int]) -> Int[np.ndarray, "set member"]:
    """Sets of different numbers below `count`."""
    pick = lambda key: jax.random.choice(key, count, (shape[1],), replace=False)
    return np.asarray(jax.vmap(pick)(jax.random.split(key, shape[0])))


def _flat(leaf: Host) -> np.ndarray:
    return np.asarray(leaf).reshape(-1, *np.shape(leaf)[2:])


def _as_draws(draws: Draws, params: object, num_networks: int) -> Draws:
    unknown = np.full((1, num_networks), np.nan)
    bare = {"info": {}, "log_weights": None, "log_proposal": None, "health": Health(1)}
    return dataclasses.replace(draws, params=params, log_density=unknown, **bare)
