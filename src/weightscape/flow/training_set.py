"""What a flow learns from: healthy draws as vectors, some chains of them held out.

Chains that did not move, or are not finite, never reach training: a few of them poison it.
"""

import zlib
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from weightscape.core.checks import require
from weightscape.core.types import PRNGKey
from weightscape.draws import Draws, examine_chains
from weightscape.flow.source import Source
from weightscape.posterior import Position

_FEWEST = 10


class TrainingSet(NamedTuple):
    """Vectors to learn from, and those that are held out; the weights are normalised importance weights."""

    train: Float[np.ndarray, "draw weight"]
    held_out: Float[np.ndarray, "draw weight"]
    train_weights: Float[np.ndarray, " draw"]
    num_left_out: int


def training_set(source: Source, draws: Draws, held_out: float) -> TrainingSet:
    """The draws of all healthy chains, cut in two.

    - `held_out`: the share of the chains that is held out; of draws, at the end, where there is one chain.
    """
    num_chains = draws.num_chains
    if draws.num_draws > 1 and num_chains > 1:
        draws = draws[list(examine_chains(np.asarray(draws.log_density), draws.info).kept)]
    z = np.asarray(vectors_of(source, draws.positions()))
    weights = np.ones(z.shape[:2]) if draws.log_weights is None else _relative(np.asarray(draws.log_weights))
    if len(z) == 1 or z.shape[1] == 1:
        z, weights = z.reshape(-1, 1, z.shape[-1]), weights.reshape(-1, 1)
    alive = np.all(np.isfinite(z), axis=(1, 2)) & _moves(z)
    z, weights = z[alive], weights[alive]
    cut = max(0, len(z) - max(1, round(held_out * len(z))))
    remedy = "Pass more draws, or chains that move."
    require(cut * z.shape[1] >= _FEWEST, f"A flow must learn from {_FEWEST} healthy draws", cut * z.shape[1], remedy)
    flat = lambda part: part.reshape(-1, *part.shape[2:])
    left_out = num_chains - draws.num_chains + int(np.sum(~alive))
    kept = flat(weights[:cut])
    return TrainingSet(flat(z[:cut]), flat(_thinned(z[cut:])), kept / kept.sum(), left_out)


def key_with_draws(key: PRNGKey, draws: Draws | None) -> PRNGKey:
    """A key that other draws change, so that a stored run is not continued with others."""
    return key if draws is None else jax.random.fold_in(key, zlib.crc32(np.asarray(draws.log_density).tobytes()))


@eqx.filter_jit
def vectors_of(source: Source, positions: Position) -> Float[jax.Array, "chain draw weight"]:
    """The vectors of many positions."""
    return jax.vmap(jax.vmap(source.vector))(positions)


def _moves(z: Float[np.ndarray, "chain draw weight"]) -> Bool[np.ndarray, " chain"]:
    """Whether a chain's draws differ, which methods need not have noted; one draw alone says nothing."""
    return np.any(z != z[:, :1], axis=(1, 2)) | (z.shape[1] == 1)


def _relative(log_weights: Float[np.ndarray, "chain draw"]) -> Float[np.ndarray, "chain draw"]:
    return np.exp(np.asarray(log_weights, np.float64) - log_weights.max())


def _thinned(z: Float[np.ndarray, "chain draw weight"]) -> Float[np.ndarray, "draw chain weight"]:
    """All of it; draws of a chain in another order, so that the first ones come from all over it."""
    order = np.random.default_rng(0).permutation(z.shape[1])
    return np.ascontiguousarray(np.swapaxes(z[:, order], 0, 1))


def padded(rows: Float[np.ndarray, "draw ..."], count: int) -> Float[jax.Array, "repeated ..."]:
    """`rows`, repeated in turn up to `count`."""
    return jnp.asarray(rows[np.arange(count) % len(rows)])
