"""One block of a metanet: units exchange what they know, think, and tell their edges."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.types import PRNGKey
from weightscape.metanet.attention import Attention
from weightscape.metanet.edges import EdgeLayer
from weightscape.metanet.linear import Slots
from weightscape.metanet.messages import Messages
from weightscape.metanet.normalise import Residual, normalised
from weightscape.metanet.plan import Plan
from weightscape.metanet.product import Product
from weightscape.metanet.sizes import Sizes


class Hidden(NamedTuple):
    """What a metanet holds between blocks: features of tokens by slot, and of the edges of each grid by slot."""

    tokens: Slots
    edges: tuple[Slots, ...]


class Block(eqx.Module):
    """Attention and messages for tokens, a product layer for tokens, a layer for the edges; each with its residual."""

    attention: Attention
    messages: tuple[Messages, ...]
    product: Product
    layers: tuple[EdgeLayer, ...]
    exchange: Residual
    inner: Residual
    outer: tuple[Residual, ...]
    plan: Plan = eqx.field(static=True)

    @staticmethod
    def of(key: PRNGKey, plan: Plan, sizes: Sizes) -> "Block":
        """A random block that starts as the identity."""
        key_attention, key_message, key_product, key_edge = jax.random.split(key, 4)
        width, edge_width, num_slots = sizes.width, sizes.edge_width, len(plan.slots)
        by_grid = lambda key: zip(jax.random.split(key, max(len(plan.grids), 1)), plan.grids, strict=False)
        return Block(
            Attention.of(key_attention, plan, width, edge_width, sizes.num_heads),
            tuple(Messages.of(k, grid, width, edge_width) for k, grid in by_grid(key_message)),
            Product.of(key_product, plan.slots, width, sizes.expansion),
            tuple(EdgeLayer.of(k, grid, width, edge_width, sizes.expansion) for k, grid in by_grid(key_edge)),
            Residual.of(sizes.width, num_slots, width),
            Residual.of(sizes.width, num_slots, width),
            tuple(Residual.of(sizes.width, len(grid.slots), edge_width) for grid in plan.grids),
            plan,
        )

    def __call__(self, condition: Float[Array, " condition"], hidden: Hidden) -> Hidden:
        """The features after the block."""
        edges = tuple(
            residual.before(condition, slots) for residual, slots in zip(self.outer, hidden.edges, strict=True)
        )
        tokens = hidden.tokens
        seen = self.exchange.before(condition, tokens)
        tokens = self.exchange.after(condition, tokens, self._exchanged(seen, edges))
        tokens = self.inner.after(condition, tokens, self.product(self.inner.before(condition, tokens)))
        told = tuple(normalised(each) for each in tokens)
        changes = [layer(told, slots, self.plan) for layer, slots in zip(self.layers, edges, strict=True)]
        changed = [
            residual.after(condition, old, new)
            for residual, old, new in zip(self.outer, hidden.edges, changes, strict=True)
        ]
        return Hidden(tokens, tuple(changed))

    def _exchanged(self, tokens: Slots, edges: tuple[Slots, ...]) -> Slots:
        """What tokens receive by attention and along all grids."""
        received = list(self.attention(tokens, edges))
        sent = [
            message
            for layer, slots in zip(self.messages, edges, strict=True)
            for message in layer(tokens, slots, self.plan)
        ]
        return tuple(each + self._collected(slot, sent, each) for slot, each in enumerate(received))

    def _collected(self, slot: int, sent: list[tuple[int, int, Array]], like: Array) -> Float[Array, "token channel"]:
        """The sum of all messages in a slot to each group, group after group."""
        parts = []
        for group, size in enumerate(self.plan.sizes):
            own = [message for to, where, message in sent if (to, where) == (group, slot)]
            nothing = jnp.zeros((size, like.shape[-1]), like.dtype)
            parts.append(sum(own, nothing))
        return jnp.concatenate(parts)
