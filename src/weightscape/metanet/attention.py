"""Relational attention: tokens look at their neighbours, with biases from the edges between them.

    a_ij = softmax_j(q_i · k_j / √d + B e_ij)          e_ij the uncharged features of the edge, where there is one
    out_i = Σ_j a_ij v_j

for uncharged features, in several heads. Neighbours of a unit are the units of its own group, those of groups that
share weights with it, and the token of the whole network, which neighbours all: so time and memory grow as the weights
do, and not with the square of a network's depth.

A charged feature of unit j may reach unit i only with a factor that is charged in both, or the signs of j would show at
i. Attention makes one by itself:

    out_i^c = Σ_j a_ij Σ_{c'} tanh(q_i^c · k_j^{c'} / √d) v_j^{c'}       for charges c, c' ≠ 0

Along real edges charged features travel by `messages`.
"""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.types import PRNGKey
from weightscape.metanet.linear import Linear, SlotLinear, Slots
from weightscape.metanet.plan import Grid, Plan


class Attention(eqx.Module):
    """Attention over the tokens of a plan."""

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
        biases = self._biases(edges)
        received: dict[int, list[Array]] = {}
        for seen, lookers in _circles(self.plan).items():
            asking = [self._taken(part, lookers) for part in queries]
            known, told = ([self._taken(part, seen) for part in parts] for parts in (keys, values))
            weights = _weights(asking[0], known[0], self._block(biases, lookers, seen))
            out = _attended(weights, asking, known, told)
            ends = np.cumsum([self.plan.sizes[group] for group in lookers])[:-1].tolist()
            parts = zip(*(jnp.split(slot, ends) for slot in out), strict=True)
            received |= {group: list(part) for group, part in zip(lookers, parts, strict=True)}
        joined = zip(*(received[group] for group in range(len(self.plan.sizes))), strict=True)
        return self.out(tuple(jnp.concatenate(slot).reshape(self.plan.num_tokens, -1) for slot in joined))

    def _taken(self, part: Float[Array, "token head size"], groups: tuple[int, ...]) -> Float[Array, "some head size"]:
        """The tokens of some groups, one after the other."""
        return jnp.concatenate([part[self.plan.tokens(group)] for group in groups])

    def _biases(self, edges: tuple[Slots, ...]) -> dict[tuple[int, int], Float[Array, "head i j"]]:
        """The biases for tokens of one group that look at those of another, by the two groups."""
        found: dict[tuple[int, int], Array] = {}
        for grid, linear, slots in zip(self.plan.grids, self.biases, edges, strict=True):
            by_pair = jnp.split(linear(slots[0]), len(_pairs(grid)), axis=-1)
            for (a, b), bias in zip(_pairs(grid), by_pair, strict=True):
                pair = (grid.groups[a], grid.groups[b])
                block = _between(bias, a, b)
                found[pair] = found[pair] + block if pair in found else block
        return found

    def _block(
        self, biases: dict[tuple[int, int], Array], lookers: tuple[int, ...], seen: tuple[int, ...]
    ) -> Float[Array, "head i j"]:
        """The biases between two lists of groups as one matrix, 0 where there are no edges."""
        sizes, dtype = self.plan.sizes, self.queries.parts[0].weight.dtype
        nothing = lambda g, h: jnp.zeros((self.num_heads, sizes[g], sizes[h]), dtype)
        block = lambda g, h: biases[g, h] if (g, h) in biases else nothing(g, h)
        return jnp.concatenate([jnp.concatenate([block(g, h) for h in seen], axis=2) for g in lookers], axis=1)


def _circles(plan: Plan) -> dict[tuple[int, ...], tuple[int, ...]]:
    """The groups that have the same neighbours, by these neighbours."""
    last = len(plan.sizes) - 1
    circles: dict[tuple[int, ...], tuple[int, ...]] = {}
    for group in range(len(plan.sizes)):
        linked = {other for grid in plan.grids if group in grid.groups for other in grid.groups}
        seen = range(len(plan.sizes)) if group == last else sorted({group, last, *linked})
        circles[tuple(seen)] = (*circles.get(tuple(seen), ()), group)
    return circles


def _weights(
    queries: Float[Array, "i head size"], keys: Float[Array, "j head size"], bias: Float[Array, "head i j"]
) -> Float[Array, "head i j"]:
    """a_ij, the softmax in single precision or better."""
    scores = _products(queries, keys) + bias
    wide = jnp.promote_types(scores.dtype, jnp.float32)
    return jax.nn.softmax(scores.astype(wide), axis=-1).astype(scores.dtype)


def _attended(
    weights: Float[Array, "head i j"], queries: list[Array], keys: list[Array], values: list[Array]
) -> list[Float[Array, "i head size"]]:
    """What is received in each slot."""
    received = [_received(weights, values[0])]
    for query in queries[1:]:
        signed = [
            _received(weights * jnp.tanh(_products(query, key)), value)
            for key, value in zip(keys[1:], values[1:], strict=True)
        ]
        received.append(sum(signed[1:], signed[0]))
    return received


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
