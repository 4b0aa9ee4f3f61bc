"""Streaming: a function of every draw at every point, in blocks that fit in memory.

Weights may be memory-mapped and points may be many, so both are cut: points into chunks, and for each chunk the draws
into stretches of all chains at once.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Shaped

from weightscape.core import tree
from weightscape.networks import widest_bytes
from weightscape.posterior import Joint, Parameters

_MEMORY = 128 * 2**20

Pointwise = Callable[..., Array]
"""`function(model, parameters, *rows) -> values` of one draw, with the points on the first axis."""


class Block(NamedTuple):
    """The values of all chains for some draws at some points."""

    points: slice
    draws: slice
    values: Shaped[np.ndarray, "chain draw point ..."]


def stream(
    function: Pointwise, model: Joint, params: Parameters, *rows: Shaped[Array, "point ..."], memory: int = _MEMORY
) -> Iterator[Block]:
    """The values of `function(model, parameters, *rows)` for every draw, chunk of points by chunk of points.

    - `params`: parameters with leading axes (chain, draw), perhaps memory-mapped.
    - `rows`: arrays with one row for each point, the inputs as the network sees them first.
    - `memory`: bytes that the work on one block may take. One draw and one point are always worked on.
    """
    num_draws, num_points = np.shape(jax.tree.leaves(params)[0])[1], len(rows[0])
    draws_at_once, points_at_once = _block_sizes(model, params, rows[0], memory)
    for points in _stretches(num_points, points_at_once):
        chosen = [row[points] for row in rows]
        for draws in _stretches(num_draws, draws_at_once):
            part = jax.tree.map(lambda leaf, draws=draws: jnp.asarray(leaf[:, draws]), params)
            yield Block(points, draws, np.asarray(_evaluate(function, model, part, *chosen)))


@eqx.filter_jit
def _evaluate(function: Pointwise, model: Joint, params: Parameters, *rows: Array) -> Array:
    return jax.vmap(jax.vmap(lambda parameters: function(model, parameters, *rows)))(params)


def _block_sizes(model: Joint, params: Parameters, x: Shaped[Array, "point ..."], memory: int) -> tuple[int, int]:
    """How many draws of all chains, and how many points, to work on at once."""
    num_chains = np.shape(jax.tree.leaves(params)[0])[0]
    one_draw = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[2:], leaf.dtype), params)
    share = memory // num_chains
    point = jax.ShapeDtypeStruct((1, *x.shape[1:]), x.dtype)
    widest = widest_bytes(model.network, one_draw.network, point)
    num_points = min(len(x), max(1, share // widest))
    return max(1, share // (tree.num_bytes(one_draw) + num_points * widest)), num_points


def _stretches(total: int, most: int) -> list[slice]:
    """Slices of at most `most` that cover `total`, as equal as they can be."""
    size = math.ceil(total / math.ceil(total / most))
    return [slice(start, min(start + size, total)) for start in range(0, total, size)]
