"""Messages along edges: each unit receives, over its edges, products of the edge and of the units at its other ends.

    m_i = C · mean_j e_ij ⊙ B x_j

For an uncharged edge whose other end has B = 0 and shift 1 this is pooling, the mean over a row or column of a matrix
(DeepSets; Zhou et al. 2023). For charged ones it is what the network itself does with its weights: the signs of unit j
cancel between e_ij and x_j, those of unit i stay. Sums of charged terms are divided by √n, since their signs differ.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.types import PRNGKey
from weightscape.metanet.linear import Linear, Slots
from weightscape.metanet.plan import Grid, Plan


class Messages(eqx.Module):
    """Messages along one grid, to the units at all its ends."""

    ends: tuple[tuple[Linear, ...], ...]
    out: tuple[tuple[Linear, ...], ...]
    grid: Grid = eqx.field(static=True)

    @staticmethod
    def of(key: PRNGKey, grid: Grid, width: int, edge_width: int) -> "Messages":
        """A random layer: a map for each end and each slot, in and out."""
        key_ends, key_out = jax.random.split(key)
        return Messages(
            end_maps(key_ends, grid, width, edge_width, shift=1.0),
            _maps(key_out, grid, lambda k, charge: Linear.of(k, edge_width, width, bias=False)),
            grid,
        )

    def __call__(self, tokens: Slots, edges: Slots, plan: Plan) -> list[tuple[int, int, Float[Array, "unit channel"]]]:
        """(group, slot, message to its units) for each end and each slot of the grid."""
        received = []
        for slot, (charges, edge) in enumerate(zip(self.grid.slots, edges, strict=True)):
            ends = self._at_ends(tokens, slot, plan)
            for axis, charge in enumerate(charges):
                message = self.out[axis][slot](_pooled(edge, ends, axis, is_charged=any(charges)))
                received.append((self.grid.groups[axis], plan.token_slot(charge), message))
        return received

    def _at_ends(self, tokens: Slots, slot: int, plan: Plan) -> list[Float[Array, "unit channel"]]:
        charges = self.grid.slots[slot]
        return [
            self.ends[axis][slot](tokens_at(tokens, self.grid, axis, charges[axis], plan))
            for axis in range(len(charges))
        ]


def end_maps(key: PRNGKey, grid: Grid, width: int, edge_width: int, *, shift: float) -> tuple[tuple[Linear, ...], ...]:
    """Random maps from tokens to edges, by axis and slot; uncharged ones have the given shift."""

    def one(key: PRNGKey, charge: int) -> Linear:
        made = Linear.of(key, width, edge_width, bias=False)
        return made if charge else Linear(made.weight, jnp.full((edge_width,), shift))

    return _maps(key, grid, one)


def tokens_at(tokens: Slots, grid: Grid, axis: int, charge: int, plan: Plan) -> Float[Array, "unit channel"]:
    """The features of a charge of the units along an axis of a grid."""
    return tokens[plan.token_slot(charge)][plan.tokens(grid.groups[axis])]


def spread(end: Float[Array, "unit channel"], axis: int, rank: int) -> Float[Array, "..."]:
    """Features of the units along one axis of a grid of the given rank, for all its edges."""
    shape = [1] * rank + [end.shape[-1]]
    shape[axis] = len(end)
    return end.reshape(shape)


def _maps(key: PRNGKey, grid: Grid, make) -> tuple[tuple[Linear, ...], ...]:
    rank = len(grid.groups)
    keys = jax.random.split(key, (rank, len(grid.slots)))
    return tuple(
        tuple(make(keys[axis, slot], charges[axis]) for slot, charges in enumerate(grid.slots)) for axis in range(rank)
    )


def _pooled(
    edge: Float[Array, "... channel"], ends: list[Array], axis: int, *, is_charged: bool
) -> Float[Array, "unit channel"]:
    """The mean, or sum over √n, over all other axes, of the edge times its other ends."""
    others = [other for other in range(len(ends)) if other != axis]
    for other in others:
        edge = edge * spread(ends[other], other, len(ends))
    count = math.prod(len(ends[other]) for other in others)
    return jnp.sum(edge, axis=tuple(others)) / (count**0.5 if is_charged else count)
