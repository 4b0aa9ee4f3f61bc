"""What a flow learns from: healthy draws as vectors, some chains of them held out.

Chains that did not move, or are not finite, never reach training: a few of them poison it.
"""

import zlib
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from weightscape.core.checks import require
from weightscape.core.types import PRNGKey
from weightscape.draws import Draws, examine_chains
from weightscape.flow.source import Source
from weightscape.posterior import Position

_FEWEST = 10


class TrainingSet(NamedTuple):
    """Vectors to learn from, and those that are held out; the weights are normalised importance weights.

    - `train_rows`, `held_out_rows`: which draws they are, counted chain by chain.
    """

    train: Float[np.ndarray, "draw weight"]
    held_out: Float[np.ndarray, "draw weight"]
    train_weights: Float[np.ndarray, " draw"]
    num_left_out: int
    train_rows: Int[np.ndarray, " draw"]
    held_out_rows: Int[np.ndarray, " draw"]


def training_set(source: Source, draws: Draws, held_out: float, *, mixed: bool = False) -> TrainingSet:
    """The draws of all healthy chains, cut in two.

    - `held_out`: the share of the chains that is held out; of draws, at the end, where there is one chain.
    - `mixed`: whether chains are put into another order first, where they may stand in that of their labels.
    """
    num_chains, rows = draws.num_chains, np.arange(len(draws)).reshape(draws.num_chains, -1)
    if draws.num_draws > 1 and num_chains > 1:
        kept = list(examine_chains(np.asarray(draws.log_density), draws.info).kept)
        draws, rows = draws[kept], rows[kept]
    positions = draws.positions()
    require_shapes(source, positions, "What a flow learns from")
    z = np.asarray(vectors_of(source, positions))
    weights = np.ones(z.shape[:2]) if draws.log_weights is None else _relative(np.asarray(draws.log_weights))
    if len(z) == 1 or z.shape[1] == 1:
        z, weights, rows = z.reshape(-1, 1, z.shape[-1]), weights.reshape(-1, 1), rows.reshape(-1, 1)
    alive = np.all(np.isfinite(z), axis=(1, 2)) & _moves(z)
    order = np.flatnonzero(alive)
    order = np.random.default_rng(0).permutation(order) if mixed else order
    z, weights, rows = z[order], weights[order], rows[order]
    cut = max(0, len(z) - max(1, round(held_out * len(z))))
    remedy = "Pass more draws, or chains that move."
    require(cut * z.shape[1] >= _FEWEST, f"A flow must learn from {_FEWEST} healthy draws", cut * z.shape[1], remedy)
    flat = lambda part: part.reshape(-1, *part.shape[2:])
    later = lambda part: flat(_thinned(part[cut:]))
    left_out = num_chains - draws.num_chains + int(np.sum(~alive))
    shares = flat(weights[:cut])
    return TrainingSet(flat(z[:cut]), later(z), shares / shares.sum(), left_out, flat(rows[:cut]), later(rows))


def key_with_draws(key: PRNGKey, draws: Draws | None, noted: str | None = None) -> PRNGKey:
    """A key that other draws change, so that a stored run is not continued with others.

    Copies of a network have one log density, and networks without any have none, so their weights are looked at.

    - `noted`: what in their `info` changes it too.
    """
    if draws is None:
        return key
    known = [] if noted is None else [draws.info[noted]]
    digest = 0
    for values in jax.tree.leaves((draws.params, draws.log_density, draws.log_weights, known)):
        digest = zlib.crc32(np.ascontiguousarray(values).tobytes(), digest)
    return jax.random.fold_in(key, digest)


def require_shapes(source: Source, positions: Position, name: str) -> None:
    """Raise where draws, with leading axes (chain, draw), are networks of other shapes than a source's."""
    wanted, came = source.layout.shapes, tuple(np.shape(leaf)[2:] for leaf in jax.tree.leaves(positions))
    remedy = "Pass draws of the same network; `flow.transfer` moves a flow to other widths."
    require(wanted == came, f"{name} must be networks of the shapes {wanted}", came, remedy)


@eqx.filter_jit
def vectors_of(source: Source, positions: Position) -> Float[jax.Array, "chain draw weight"]:
    """The vectors of many positions."""
    return jax.vmap(jax.vmap(source.vector))(positions)


def _moves(z: Float[np.ndarray, "chain draw weight"]) -> Bool[np.ndarray, " chain"]:
    """Whether a chain's draws differ, which methods need not have noted; one draw alone says nothing."""
    return np.any(z != z[:, :1], axis=(1, 2)) | (z.shape[1] == 1)


def _relative(log_weights: Float[np.ndarray, "chain draw"]) -> Float[np.ndarray, "chain draw"]:
    return np.exp(np.asarray(log_weights, np.float64) - log_weights.max())


def _thinned(z: Shaped[np.ndarray, "chain draw ..."]) -> Shaped[np.ndarray, "draw chain ..."]:
    """All of it; draws of a chain in another order, so that the first ones come from all over it."""
    order = np.random.default_rng(0).permutation(z.shape[1])
    return np.ascontiguousarray(np.swapaxes(z[:, order], 0, 1))


def padded(rows: Float[np.ndarray, "draw ..."], count: int) -> Float[jax.Array, "repeated ..."]:
    """`rows`, repeated in turn up to `count`."""
    return jnp.asarray(rows[np.arange(count) % len(rows)])
