"""The network's outputs of all draws, chunk of points by chunk of points.

    outputs[i, n] = f(x_n; θ_i)

`Recomputed` runs the network anew each time it is asked and streams the weights, so that neither the outputs nor
memory-mapped draws are ever whole in memory. `Held` keeps what another yields. Both yield the same numbers.
"""

import abc
from collections.abc import Iterator
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.checks import require
from weightscape.core.types import Tree
from weightscape.networks import Network
from weightscape.predictive.plan import Plan


class Chunk(NamedTuple):
    """Outputs at some points; `outputs` repeats the last draw and the last point up to the plan's sizes."""

    points: slice
    outputs: Float[Array, "draw point output"]


class Outputs(eqx.Module):
    """Yields the outputs of all draws, one chunk of points at a time."""

    plan: eqx.AbstractVar[Plan]

    @abc.abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """The chunks in order; every chunk has the same padded shape."""


class Held(Outputs):
    """Outputs that are kept in memory, one block for each chunk."""

    plan: Plan = eqx.field(static=True)
    blocks: tuple[Float[Array, "draw point output"], ...]

    def chunks(self) -> Iterator[Chunk]:
        return (Chunk(points, block) for points, block in zip(self.plan.chunks, self.blocks, strict=True))


class Recomputed(Outputs):
    """Outputs that are computed when they are asked for.

    - `params`: the network's parameters with leading axes (chain, draw), perhaps memory-mapped.
    - `x`: inputs as the network sees them.
    """

    plan: Plan = eqx.field(static=True)
    network: Network
    params: Tree
    x: Float[np.ndarray, "point ..."]

    def chunks(self) -> Iterator[Chunk]:
        for points in self.plan.chunks:
            x = jnp.asarray(pad_rows(self.x[points], self.plan.chunk_size))
            outputs = jnp.concatenate([_forward(self.network, batch, x) for batch in self._batches()])
            check_outputs(outputs, points, "Leave these draws out, or look at `draws.health`.")
            yield Chunk(points, outputs)

    def _batches(self) -> Iterator[Tree]:
        """Parameters of `batch_size` draws at a time, chains and draws on one axis."""
        num_draws = np.shape(jax.tree.leaves(self.params)[0])[1]
        for start in range(0, self.plan.num_draws, self.plan.batch_size):
            # Beyond the end the last draw is repeated; it gets no weight.
            rows = np.minimum(np.arange(start, start + self.plan.batch_size), self.plan.num_draws - 1)
            chains, kept = np.divmod(rows, num_draws)
            yield jax.tree.map(lambda leaf, where=(chains, kept): jnp.asarray(leaf[where]), self.params)


def hold(outputs: Outputs) -> Held:
    """The same outputs, computed once and kept."""
    return Held(outputs.plan, tuple(chunk.outputs for chunk in outputs.chunks()))


def pad_rows(rows: np.ndarray, num_rows: int) -> np.ndarray:
    """`rows` with the last one repeated until there are `num_rows`."""
    missing = num_rows - len(rows)
    return rows if missing == 0 else np.concatenate([rows, np.repeat(rows[-1:], missing, axis=0)])


def check_outputs(outputs: Float[Array, "draw point output"], points: slice, remedy: str) -> None:
    """Raise where outputs are not finite, and say at which points and in how many draws."""
    broken = int(_count_broken(outputs))
    asked = f"Outputs of the draws must be finite at points {points.start} to {points.stop - 1}"
    require(broken == 0, asked, f"{broken} draws that are not", remedy)


@eqx.filter_jit
def _forward(network: Network, params: Tree, x: Float[Array, "point ..."]) -> Float[Array, "draw point output"]:
    return jax.vmap(network.apply, (0, None))(params, x)


@jax.jit
def _count_broken(outputs: Float[Array, "draw point output"]) -> Array:
    return jnp.sum(~jnp.all(jnp.isfinite(outputs), axis=(1, 2)))
