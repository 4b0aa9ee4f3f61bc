"""What draws are re-based onto.

The first draw is one choice out of many. The mean of networks that have been re-based is another: with it the order of
the draws matters less, and where matching and mean are taken in turns until nothing changes,

    centre = mean_i g_i θ_i,        g_i = argmin_g ‖centre − g θ_i‖,

not at all but for the start. Through the centre any two networks are matched consistently: going from one to a second
and on to a third is going straight to the third (Crisostomi et al. 2024). The turns are those of Ainsworth, Hayase and
Srinivasa (2023), MergeMany, with the mean of all networks in place of that of all others.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from weightscape.core import tree
from weightscape.core.checks import require_count
from weightscape.core.types import PRNGKey, Tree
from weightscape.geometry.many_networks import ManyNetworks
from weightscape.symmetry import Element


class Reference(eqx.Module):
    """A way to say what every network is brought close to."""

    @abc.abstractmethod
    def elements(self, key: PRNGKey, networks: ManyNetworks) -> Element:
        """One element for each network, on one leading axis."""


class FirstDraw(Reference):
    """The first draw of the first chain."""

    def elements(self, key: PRNGKey, networks: ManyNetworks) -> Element:
        return networks.match_all(key, networks.one(0))


class OneNetwork(Reference):
    """Given weights: a tree of the symmetry's layout."""

    weights: Tree

    def elements(self, key: PRNGKey, networks: ManyNetworks) -> Element:
        return networks.match_all(key, self.weights)


class MovingMean(Reference):
    """The mean of the draws before, after they were re-based: one draw after the other, chain by chain."""

    def elements(self, key: PRNGKey, networks: ManyNetworks) -> Element:
        mean, found = networks.one(0), [networks.symmetry.identity()]
        networks.progress.start("rebase", len(networks))
        try:
            for i in range(1, len(networks)):
                params = networks.one(i)
                matched = networks.matching.match(key, networks.symmetry, params, mean)
                mean = _with_one_more(mean, networks.symmetry.apply(params, matched.element), i)
                found.append(matched.element)
                networks.progress.advance(i + 1, {"distance": float(matched.distance)})
        finally:
            networks.progress.finish()
        return tree.stack(found)


class Centre(Reference):
    """The cycle-consistent centre: mean and matching in turns, from the first draw.

    - `num_rounds`: how often, at most; it ends where no draw moves any more.

    With weight matching the sum of squared distances to the mean never grows from one round to the next.
    """

    num_rounds: int = eqx.field(static=True, default=20)

    def __check_init__(self):
        require_count("`num_rounds` of Centre", self.num_rounds)

    def elements(self, key: PRNGKey, networks: ManyNetworks) -> Element:
        found = networks.match_all(key, networks.one(0))
        for i in range(self.num_rounds):
            key_round = jax.random.fold_in(key, i)
            new = networks.match_all(key_round, networks.mean(found), found)
            settled, found = _equal(found, new), new
            if settled:
                break
        return found


def _with_one_more(mean: Tree, params: Tree, count: int) -> Tree:
    """The mean of `count + 1` networks from that of `count`."""
    return jax.tree.map(lambda old, new: old + (new - old) / (count + 1), mean, params)


def _equal(first: Element, second: Element) -> bool:
    """Whether elements are the same; scales to rounding."""
    discrete = lambda element: [*element.permutations, *element.signs]
    same = all(bool(jnp.all(a == b)) for a, b in zip(discrete(first), discrete(second), strict=True))
    return same and all(
        np.allclose(a, b, rtol=0, atol=1e-4) for a, b in zip(first.log_scales, second.log_scales, strict=True)
    )
