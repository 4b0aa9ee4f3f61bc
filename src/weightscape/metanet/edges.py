"""How edges change: a non-linear layer on their own features and on those of the units at their ends.

    h_ij = e_ij + P x_i ⊙ P' x_j + (Q x_i + Q' x_j),      change = product layer of h

The product of the ends has the charges of the edge; the sum in brackets is for uncharged features only. Where both ends
are units of one group, e_ji is another feature of the edge, and edges of a unit to itself are told apart.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.types import PRNGKey
from weightscape.metanet.charges import swapped
from weightscape.metanet.linear import Linear, SlotLinear, Slots, along_last
from weightscape.metanet.messages import end_maps, spread, tokens_at
from weightscape.metanet.plan import Grid, Plan
from weightscape.metanet.product import Product


class EdgeLayer(eqx.Module):
    """The layer for one grid."""

    factors: tuple[tuple[Linear, ...], ...]
    summands: tuple[Linear, ...]
    turned: tuple[SlotLinear, ...]
    own: tuple[Float[Array, " channel"], ...]
    product: Product
    grid: Grid = eqx.field(static=True)

    @staticmethod
    def of(key: PRNGKey, grid: Grid, width: int, edge_width: int, expansion: int) -> "EdgeLayer":
        """A random layer."""
        key_factor, key_sum, key_turn, key_own, key_product = jax.random.split(key, 5)
        keys_sum = jax.random.split(key_sum, len(grid.groups))
        keys_turn = jax.random.split(key_turn, max(len(grid.twins), 1))
        keys_own = jax.random.split(key_own, max(len(grid.twins), 1))
        return EdgeLayer(
            end_maps(key_factor, grid, width, edge_width, shift=0.0),
            tuple(Linear.of(k, width, edge_width, bias=False) for k in keys_sum),
            tuple(
                SlotLinear.of(k, len(grid.slots), edge_width, edge_width)
                for k, _ in zip(keys_turn, grid.twins, strict=False)
            ),
            tuple(jax.random.normal(k, (edge_width,)) for k, _ in zip(keys_own, grid.twins, strict=False)),
            Product.of(key_product, grid.slots, edge_width, expansion),
            grid,
        )

    def __call__(self, tokens: Slots, edges: Slots, plan: Plan) -> Slots:
        """The change of the edges, by slot."""
        hidden = [edge + self._of_ends(tokens, slot, plan) for slot, edge in enumerate(edges)]
        hidden[0] = hidden[0] + self._sum_of_ends(tokens, plan)
        for twins, linear, own in zip(self.grid.twins, self.turned, self.own, strict=True):
            hidden = [each + turn for each, turn in zip(hidden, linear(self._turned(edges, twins)), strict=True)]
            hidden[0] = hidden[0] + self._diagonal(twins, hidden[0]) * along_last(own, hidden[0])
        return self.product(tuple(hidden))

    def _of_ends(self, tokens: Slots, slot: int, plan: Plan) -> Float[Array, "..."]:
        charges = self.grid.slots[slot]
        total = jnp.ones((1,) * (len(charges) + 1), tokens[0].dtype)
        for axis, charge in enumerate(charges):
            end = self.factors[axis][slot](tokens_at(tokens, self.grid, axis, charge, plan))
            total = total * spread(end, axis, len(charges))
        return total

    def _sum_of_ends(self, tokens: Slots, plan: Plan) -> Float[Array, "..."]:
        rank = len(self.grid.groups)
        ends = [linear(tokens_at(tokens, self.grid, axis, 0, plan)) for axis, linear in enumerate(self.summands)]
        parts = [spread(end, axis, rank) for axis, end in enumerate(ends)]
        return sum(parts[1:], parts[0])

    def _turned(self, edges: Slots, twins: tuple[int, int]) -> Slots:
        numbers = [self.grid.slots.index(swapped(charges, *twins)) for charges in self.grid.slots]
        return tuple(jnp.swapaxes(edges[number], *twins) for number in numbers)

    def _diagonal(self, twins: tuple[int, int], like: Array) -> Float[Array, "..."]:
        """1 where the two ends are the same unit, 0 elsewhere."""
        shape = [size if axis in twins else 1 for axis, size in enumerate((*self.grid.sizes, 1))]
        return jnp.eye(self.grid.sizes[twins[0]], dtype=like.dtype).reshape(shape)
