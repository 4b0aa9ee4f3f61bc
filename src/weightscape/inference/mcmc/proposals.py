"""Symmetric proposals for Metropolis–Hastings: z → z' is as likely as z' → z."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, registered, tree
from weightscape.core.checks import require, require_positive
from weightscape.core.numbers import number
from weightscape.posterior import Position


class Proposal(eqx.Module):
    """A symmetric distribution of the next position given the current one."""

    @abc.abstractmethod
    def propose(self, key: PRNGKey, position: Position) -> Position:
        """A position near the given one."""


@registered("inference.RandomWalk")
class RandomWalk(Proposal):
    """z' = z + s ε with ε ~ N(0, 1) for every coordinate.  `scale`: s."""

    scale: Float[Array, ""] = eqx.field(default=0.1, converter=number)

    def __check_init__(self):
        require_positive("`scale` of RandomWalk", self.scale)

    def propose(self, key: PRNGKey, position: Position) -> Position:
        return tree.add(position, tree.scale(self.scale, tree.normal_like(key, position)))


@registered("inference.Flip")
class Flip(Proposal):
    """One weight, chosen at random, changes to another of its values.  `values`: those of the `Discrete` prior."""

    values: Float[Array, " value"] = eqx.field(default=(-1.0, 1.0), converter=number)

    def __check_init__(self):
        require(len(self.values) > 1, "`values` of Flip must be at least two", len(self.values), "Pass the prior's.")

    def propose(self, key: PRNGKey, position: Position) -> Position:
        key_weight, key_value = jax.random.split(key)
        flat, unravel = ravel_pytree(position)
        chosen = jax.random.randint(key_weight, (), 0, flat.size)
        here = jnp.argmin(jnp.abs(self.values - flat[chosen]))
        # A shift by 1 to K − 1 places around the circle of values reaches every other value alike.
        there = (here + jax.random.randint(key_value, (), 1, len(self.values))) % len(self.values)
        return unravel(flat.at[chosen].set(self.values[there].astype(flat.dtype)))
