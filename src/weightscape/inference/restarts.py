"""Second chances: where a chain that looks lost after warm-up starts again.

A lost chain (it does not move, is not finite, or its log density is far from the other chains') takes the tuning of a
healthy one, chosen at random, and a new position. Only chains on request are moved: a low log density may be a true
mode, and moving the chain then hides it.
"""

import abc

import equinox as eqx
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, registered, tree
from weightscape.core.checks import require_positive
from weightscape.core.numbers import number
from weightscape.posterior import Position, Posterior


class Restart(eqx.Module):
    """A distribution of new positions, given that of a healthy chain."""

    @abc.abstractmethod
    def sample(self, key: PRNGKey, posterior: Posterior, healthy: Position) -> Position:
        """Where a lost chain starts again."""


@registered("inference.Nearby")
class Nearby(Restart):
    """The neighbourhood of a healthy chain: z' = z + s ε with ε ~ N(0, 1).  `scale`: s."""

    scale: Float[Array, ""] = eqx.field(default=0.01, converter=number)

    def __check_init__(self):
        require_positive("`scale` of Nearby", self.scale)

    def sample(self, key: PRNGKey, posterior: Posterior, healthy: Position) -> Position:
        return tree.add(healthy, tree.scale(self.scale, tree.normal_like(key, healthy)))


@registered("inference.Afresh")
class Afresh(Restart):
    """A draw from the prior, wherever the healthy chain is."""

    def sample(self, key: PRNGKey, posterior: Posterior, healthy: Position) -> Position:
        return posterior.sample_prior_position(key)
