"""Relational attention: every token looks at every other, with biases from the edges between them.

    a_ij = softmax_j(q_i · k_j / √d + B e_ij)          e_ij the uncharged features of the edge, where there is one
    out_i = Σ_j a_ij v_j

for uncharged features, in several heads. A charged feature of unit j may reach unit i only with a factor that is
charged in both, or the signs of j would show at i. Attention makes one by itself:

    out_i^c = Σ_j a_ij Σ_{c'} tanh(q_i^c · k_j^{c'} / √d) v_j^{c'}       for charges c, c' ≠ 0

Along real edges charged features travel by `messages`.
"""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.types import PRNGKey
from weightscape.metanet.linear import Linear, SlotLinear, Slots
from weightscape.metanet.plan import Grid, Plan


class Attention(eqx.Module):
    """Attention over all tokens of a plan."""

    queries: SlotLinear
    keys: SlotLinear
    values: SlotLinear
    out: SlotLinear
    biases: tuple[Linear, ...]
    plan: Plan = eqx.field(static=True)
    num_heads: int = eqx.field(static=True)

    @staticmethod
    def of(key: PRNGKey, plan: Plan, width: int, edge_width: int, num_heads: int) -> "Attention":
        """A random layer; `width` is a multiple of `num_heads`."""
        key_query, key_key, key_value, key_out, key_bias = jax.random.split(key, 5)
        linear = lambda key: SlotLinear.of(key, len(plan.slots), width, width)
        keys_bias = jax.random.split(key_bias, max(len(plan.grids), 1))
        biases = [
            Linear.of(each, edge_width, num_heads * len(_pairs(grid)), bias=False)
            for each, grid in zip(keys_bias, plan.grids, strict=False)
        ]
        return Attention(
            linear(key_query), linear(key_key), linear(key_value), linear(key_out), tuple(biases), plan, num_heads
        )

    def __call__(self, tokens: Slots, edges: tuple[Slots, ...]) -> Slots:
        """What each token receives, by slot."""
        queries, keys, values = (
            [_heads(each, self.num_heads) for each in linear(tokens)]
            for linear in (self.queries, self.keys, self.values)
        )
        scores = _products(queries[0], keys[0]) + self._bias(edges)
        weights = jax.nn.softmax(scores.astype(jnp.promote_types(scores.dtype, jnp.float32)), axis=-1)
        weights = weights.astype(scores.dtype)
        received = [_received(weights, values[0])]
        for query in queries[1:]:
            signed = [
                _received(weights * jnp.tanh(_products(query, key)), value)
                for key, value in zip(keys[1:], values[1:], strict=True)
            ]
            received.append(sum(signed[1:], signed[0]))
        return self.out(tuple(each.reshape(self.plan.num_tokens, -1) for each in received))

    def _bias(self, edges: tuple[Slots, ...]) -> Float[Array, "head token token"]:
        num_tokens = self.plan.num_tokens
        total = jnp.zeros((self.num_heads, num_tokens, num_tokens), self.queries.parts[0].weight.dtype)
        for grid, linear, slots in zip(self.plan.grids, self.biases, edges, strict=True):
            by_pair = jnp.split(linear(slots[0]), len(_pairs(grid)), axis=-1)
            for (a, b), bias in zip(_pairs(grid), by_pair, strict=True):
                total = total + _placed(_between(bias, a, b), self._rows(grid, a), self._rows(grid, b), num_tokens)
        return total

    def _rows(self, grid: Grid, axis: int) -> slice:
        return self.plan.tokens(grid.groups[axis])


def _pairs(grid: Grid) -> tuple[tuple[int, int], ...]:
    return tuple(itertools.permutations(range(len(grid.groups)), 2))


def _heads(x: Float[Array, "token channel"], num_heads: int) -> Float[Array, "token head size"]:
    return x.reshape(len(x), num_heads, -1)


def _products(queries: Float[Array, "i head size"], keys: Float[Array, "j head size"]) -> Float[Array, "head i j"]:
    return jnp.einsum("ihs,jhs->hij", queries, keys) / queries.shape[-1] ** 0.5


def _received(weights: Float[Array, "head i j"], values: Float[Array, "j head size"]) -> Float[Array, "i head size"]:
    return jnp.einsum("hij,jhs->ihs", weights, values)


def _between(bias: Float[Array, "... head"], a: int, b: int) -> Float[Array, "head i j"]:
    """The biases for tokens along axis a that look at those along axis b; the mean over other axes."""
    others = tuple(axis for axis in range(bias.ndim - 1) if axis not in (a, b))
    flat = jnp.mean(bias, axis=others) if others else bias
    return flat.transpose(2, 0, 1) if a < b else flat.transpose(2, 1, 0)


def _placed(block: Float[Array, "head i j"], rows: slice, columns: slice, num_tokens: int) -> Array:
    """The block in the matrix of all tokens, 0 elsewhere: padding fuses with the sum, a scatter does not."""
    edges = [(0, 0, 0)] + [(part.start, num_tokens - part.stop, 0) for part in (rows, columns)]
    return jax.lax.pad(block, jnp.zeros((), block.dtype), edges)
