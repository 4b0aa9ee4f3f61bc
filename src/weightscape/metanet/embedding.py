"""The first features of tokens and edges: linear in the weights of each place.

    token_i^c = Σ W_place x_place,i      over the places of unit i's group with charge c
    token_i^0 += k_group + Σ V_place log(1 + x²_place,i)

The second line is for uncharged features: what group the unit belongs to, and the sizes of its weights. Sizes are all
that may be seen of charged weights, whose signs must not show, and where scales are normalised away from most layers
the last ones spread over powers of ten, which logarithms bear. Each channel has its own row of W, which is what a
position along a fixed axis means; units have none.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.types import PRNGKey
from weightscape.metanet.block import Hidden
from weightscape.metanet.linear import Linear, Slots
from weightscape.metanet.plan import Plan, token_group
from weightscape.metanet.sizes import Sizes


class Embedding(eqx.Module):
    """Weights of all places to the features of tokens and edges."""

    entries: tuple[Linear, ...]
    magnitudes: tuple[Linear, ...]
    group_kinds: Float[Array, "group channel"]
    grid_kinds: Float[Array, "grid edge_channel"]
    plan: Plan = eqx.field(static=True)

    @staticmethod
    def of(key: PRNGKey, plan: Plan, sizes: Sizes, num_trees: int) -> "Embedding":
        """A random one, for `num_trees` numbers of each weight."""
        key_entry, key_size, key_group, key_grid = jax.random.split(key, 4)
        widths = [sizes.edge_width if token_group(place) is None else sizes.width for place in plan.places]
        linear = lambda key, i: Linear.of(
            jax.random.fold_in(key, i), num_trees * plan.places[i].num_channels, widths[i], bias=False
        )
        return Embedding(
            tuple(linear(key_entry, i) for i in range(len(widths))),
            tuple(linear(key_size, i) for i in range(len(widths))),
            jax.random.normal(key_group, (len(plan.sizes), sizes.width)),
            jax.random.normal(key_grid, (len(plan.grids), sizes.edge_width)),
            plan,
        )

    def __call__(self, parts: tuple[Float[Array, "..."], ...]) -> Hidden:
        """The first features."""
        by_group = [self._slots(parts, group) for group in range(len(self.plan.sizes))]
        tokens = tuple(jnp.concatenate(slot) for slot in zip(*by_group, strict=True))
        return Hidden(tokens, tuple(self._edge_slots(parts, i) for i in range(len(self.plan.grids))))

    def _slots(self, parts: tuple[Array, ...], group: int) -> list[Array]:
        size = self.plan.sizes[group]
        kind = jnp.broadcast_to(self.group_kinds[group], (size, self.group_kinds.shape[1]))
        slots = [kind, *(jnp.zeros_like(kind) for _ in self.plan.slots[1:])]
        for i, place in enumerate(self.plan.places):
            owner = token_group(place)
            if owner is not None and owner % len(self.plan.sizes) == group:
                slot = self.plan.token_slot((*place.charges, 0)[0])
                self._add(slots, slot, i, parts[i].reshape(size, -1))
        return slots

    def _edge_slots(self, parts: tuple[Array, ...], number: int) -> Slots:
        grid = self.plan.grids[number]
        kind = jnp.broadcast_to(self.grid_kinds[number], (*grid.sizes, self.grid_kinds.shape[1]))
        slots = [kind, *(jnp.zeros_like(kind) for _ in grid.slots[1:])]
        for i, place in enumerate(self.plan.places):
            if place.groups == grid.groups:
                self._add(slots, grid.slots.index(place.charges), i, parts[i])
        return tuple(slots)

    def _add(self, slots: list[Array], slot: int, i: int, part: Float[Array, "... channel"]) -> None:
        slots[slot] = slots[slot] + self.entries[i](part)
        slots[0] = slots[0] + self.magnitudes[i](jnp.log1p(part**2))
