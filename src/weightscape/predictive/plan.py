"""Plan: how many points and how many draws to work on at once.

The outputs of all draws at all points are draws × points × outputs numbers, too many to hold for large data. Points
go in chunks, and within a chunk weights are streamed in batches of draws. Sizes are powers of two and at least an
eighth of the whole, so that padding adds less than a quarter and few sizes are ever compiled.
"""

import math
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from weightscape.core import tree
from weightscape.core.types import Tree
from weightscape.networks import Network, widest_bytes

DEFAULT_MEMORY = 512 * 2**20
_PARTS = 8
_SHARE = 4


class Plan(NamedTuple):
    """Chunks of `chunk_size` points, batches of `batch_size` draws; `fits` says whether all outputs may be held."""

    num_points: int
    num_draws: int
    chunk_size: int
    batch_size: int
    fits: bool

    @property
    def padded_draws(self) -> int:
        """Draws with the padding of the last batch."""
        return math.ceil(self.num_draws / self.batch_size) * self.batch_size

    @property
    def chunks(self) -> list[slice]:
        """The points of each chunk, without padding."""
        starts = range(0, self.num_points, self.chunk_size)
        return [slice(start, min(start + self.chunk_size, self.num_points)) for start in starts]


def make_plan(
    network: Network, one_draw: Tree, x: Float[np.ndarray, "point ..."], *, num_draws: int, memory: int
) -> Plan:
    """Sizes under which a chunk's outputs, and the network's work on a batch, each take a quarter of `memory`.

    - `one_draw`: the network's parameters of one draw, or their shapes.
    - `memory`: bytes. One point and one draw are always worked on, even where they take more.
    """
    point = jax.ShapeDtypeStruct((1, *x.shape[1:]), x.dtype)
    output_bytes = tree.num_bytes(jax.eval_shape(network.apply, one_draw, point))
    widest = widest_bytes(network, one_draw, point)
    share = memory // _SHARE
    batch_size = _eighth(num_draws)
    padded_draws = math.ceil(num_draws / batch_size) * batch_size
    chunk_size = min(_eighth(len(x)), _power_below(share // max(padded_draws * output_bytes, widest)))
    batch_size = min(batch_size, _power_below(share // max(tree.num_bytes(one_draw), chunk_size * widest)))
    padded_points = math.ceil(len(x) / chunk_size) * chunk_size
    return Plan(len(x), num_draws, chunk_size, batch_size, padded_draws * padded_points * output_bytes <= memory)


def make_jacobian_plan(
    network: Network, params: Tree, x: Float[np.ndarray, "point ..."], *, row_bytes: int, memory: int
) -> Plan:
    """Sizes under which the Jacobians of a chunk, and the network's work on them, each take a quarter of `memory`.

    - `params`: the network's parameters, or their shapes.
    - `row_bytes`: the gradient of one output at one point.
    - `memory`: bytes. One point is always worked on, even where it takes more.
    """
    point = jax.ShapeDtypeStruct((1, *x.shape[1:]), x.dtype)
    num_outputs = tree.size(jax.eval_shape(network.apply, params, point))
    each = num_outputs * max(row_bytes, widest_bytes(network, params, point))
    chunk_size = min(_eighth(len(x)), _power_below(memory // _SHARE // each))
    return Plan(len(x), 1, chunk_size, 1, fits=True)


def make_held_plan(num_points: int) -> Plan:
    """Sizes for one component whose numbers are at hand."""
    return Plan(num_points, 1, _eighth(num_points), 1, fits=True)


def _eighth(number: int) -> int:
    """The smallest power of two that is at least an eighth of `number`."""
    return 2 ** math.ceil(math.log2(max(number / _PARTS, 1)))


def _power_below(number: int) -> int:
    """The largest power of two up to `number`, and at least 1."""
    return 2 ** (max(number, 1).bit_length() - 1)
