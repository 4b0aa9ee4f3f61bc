"""Where chains and optimisers start.

A method's `init` is one of these objects, draws (chains take the last draw of each of its chains in turn), or another
method, which is run first: `init=DeepEnsemble()` starts each chain at its own member.
"""

import abc

import equinox as eqx

from weightscape.core import PRNGKey, registered
from weightscape.posterior import Position, Posterior


class Start(eqx.Module):
    """A distribution of starting positions."""

    @abc.abstractmethod
    def sample(self, key: PRNGKey, posterior: Posterior) -> Position:
        """Where one chain starts."""


@registered("inference.FromNetwork")
class FromNetwork(Start):
    """The network's own initial weights, the default: what its author would begin training with."""

    def sample(self, key: PRNGKey, posterior: Posterior) -> Position:
        return posterior.start_position(key)


@registered("inference.FromPrior")
class FromPrior(Start):
    """A draw from the prior: the most dispersed start, which R̂ is best judged from, and the hardest."""

    def sample(self, key: PRNGKey, posterior: Posterior) -> Position:
        return posterior.sample_prior_position(key)
