"""What a metanet says in the end: a number for each weight, or one vector for the whole network.

    written:  v_place = D h^c + Σ x_place ⊙ G h^0      D, G zero at first; h the features of the unit or edge
    read:     y = network of the mean features of all groups and grids

The sum is over the weights and their companions. h^c has the charge of the place and h^0 none, so what is written
transforms as the weights themselves.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.types import PRNGKey
from weightscape.metanet.block import Hidden
from weightscape.metanet.linear import Linear
from weightscape.metanet.normalise import normalised
from weightscape.metanet.plan import Plan, token_group
from weightscape.metanet.sizes import Sizes


class WeightHead(eqx.Module):
    """A number for each weight: equivariant, zero at first."""

    direct: tuple[Linear, ...]
    gates: tuple[Linear, ...]
    plan: Plan = eqx.field(static=True)

    @staticmethod
    def of(plan: Plan, sizes: Sizes, num_trees: int) -> "WeightHead":
        """One that says zero, where each weight comes with `num_trees` numbers."""
        widths = [sizes.edge_width if token_group(place) is None else sizes.width for place in plan.places]
        pairs = list(zip(plan.places, widths, strict=True))
        return WeightHead(
            tuple(Linear.zero(width, place.num_channels, bias=not place.is_charged) for place, width in pairs),
            tuple(Linear.zero(width, num_trees * place.num_channels) for place, width in pairs),
            plan,
        )

    def __call__(self, hidden: Hidden, parts: tuple[Float[Array, "..."], ...]) -> tuple[Float[Array, "..."], ...]:
        """The numbers for the weights of every place."""
        return tuple(self._of_place(i, hidden, part) for i, part in enumerate(parts))

    def _of_place(self, i: int, hidden: Hidden, part: Float[Array, "..."]) -> Float[Array, "... channel"]:
        charged, uncharged = _features_at(self.plan, i, hidden)
        each = (*part.shape[:-1], -1, self.plan.places[i].num_channels)
        gated = jnp.sum((part * self.gates[i](uncharged).reshape(part.shape)).reshape(each), axis=-2)
        return self.direct[i](charged).reshape(gated.shape) + gated


class VectorHead(eqx.Module):
    """One vector for the whole network: invariant, zero at first."""

    inner: Linear
    outer: Linear
    plan: Plan = eqx.field(static=True)

    @staticmethod
    def of(key: PRNGKey, plan: Plan, sizes: Sizes, num_outputs: int) -> "VectorHead":
        """One of `num_outputs` numbers that says zero."""
        num_features = len(plan.sizes) * sizes.width + len(plan.grids) * sizes.edge_width
        hidden = sizes.expansion * sizes.width
        return VectorHead(Linear.of(key, num_features, hidden), Linear.zero(hidden, num_outputs), plan)

    def __call__(self, hidden: Hidden) -> Float[Array, " output"]:
        """The vector."""
        tokens = normalised(hidden.tokens[0])
        means = [jnp.mean(tokens[self.plan.tokens(group)], axis=0) for group in range(len(self.plan.sizes))]
        means += [jnp.mean(normalised(slots[0]), axis=tuple(range(slots[0].ndim - 1))) for slots in hidden.edges]
        return self.outer(jax.nn.silu(self.inner(jnp.concatenate(means))))


def _features_at(plan: Plan, i: int, hidden: Hidden) -> tuple[Array, Array]:
    """The features of a place's charge and the uncharged ones, of its units or edges."""
    place = plan.places[i]
    group = token_group(place)
    if group is not None:
        slot = plan.token_slot((*place.charges, 0)[0])
        chosen = (hidden.tokens[slot][plan.tokens(group)], hidden.tokens[0][plan.tokens(group)])
    else:
        number = [grid.groups for grid in plan.grids].index(place.groups)
        slots = hidden.edges[number]
        chosen = (slots[plan.grids[number].slots.index(place.charges)], slots[0])
    charged, uncharged = chosen
    return normalised(charged), normalised(uncharged)
