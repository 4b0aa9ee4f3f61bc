"""Weight matching: the closest equivalent network, by coordinate descent over groups.

    g = argmin_g ‖reference − g θ‖²,        one linear assignment for each group while all others are held

(Ainsworth, Hayase and Srinivasa 2023, algorithm 1). Here signs and scales are chosen with the permutation, exactly, for
each pair of units; groups may lie on any leaf of any network; and the descent has several starts.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from weightscape.core.checks import require_count
from weightscape.core.types import PRNGKey
from weightscape.geometry.group_step import best_for_group
from weightscape.geometry.match import Matched, Matching, Task
from weightscape.geometry.unit_products import places
from weightscape.symmetry import Element, Symmetry

_LEAST_FALL = 1e-6
"""The fall of the distance, relative to it, that is worth another sweep; scales are found step by step."""


class WeightMatching(Matching):
    """Coordinate descent from the identity, from a pass through the network, and from random elements.

    - `num_restarts`: how many random starts there are beside the two others.
    - `max_sweeps`: how often all groups are gone through from each start, at most; the descent ends where no step
      brings the network closer.

    The pass through the network matches group after group by those weights alone that belong to no group still to come.
    The result is never further from the reference than the network itself. With a single group that lies on each leaf
    only once it is the closest equivalent network, after one assignment. Log scales times exponents stay within ±10.
    """

    num_restarts: int = eqx.field(static=True, default=0)
    max_sweeps: int = eqx.field(static=True, default=50)

    def __check_init__(self):
        require_count("`num_restarts` of WeightMatching", self.num_restarts, least=0)
        require_count("`max_sweeps` of WeightMatching", self.max_sweeps)

    def find(self, key: PRNGKey, task: Task) -> Matched:
        identity = Descent(task.identities(), np.asarray(task.before), np.zeros(task.num_networks, int))
        if is_one_assignment(task.symmetry):
            return _matched(task, descend(key, task, identity, max_sweeps=1))
        key_start, key_order = jax.random.split(key)
        starts = (passed_through(task), *self._random_starts(key_start, task))
        best = descend(key_order, task, identity, max_sweeps=self.max_sweeps)
        for i, element in enumerate(starts):
            start = Descent(element, np.asarray(task.distances(element)), identity.num_sweeps)
            key_descent = jax.random.fold_in(key_order, i)
            best = _closer(best, descend(key_descent, task, start, max_sweeps=self.max_sweeps))
        return _matched(task, best)

    def _random_starts(self, key: PRNGKey, task: Task) -> list[Element]:
        """The same for all networks, so that one network is matched alike alone and among others."""
        keys = jax.random.split(key, max(self.num_restarts, 1))[: self.num_restarts]
        return [task.repeated(task.symmetry.random(one, scale_spread=0.0)) for one in keys]


class Descent(NamedTuple):
    """Where a descent stands, for each network."""

    element: Element
    distance: Float[np.ndarray, " batch"]
    num_sweeps: Int[np.ndarray, " batch"]


def is_one_assignment(symmetry: Symmetry) -> bool:
    """Whether one assignment is the whole problem: at most one group, which lies on each leaf only once."""
    num_groups = len(symmetry.groups)
    return num_groups <= 1 and not any(place.others for g in range(num_groups) for place in places(symmetry, g))


def descend(key: PRNGKey, task: Task, start: Descent, *, max_sweeps: int) -> Descent:
    """Sweeps over all groups in random orders, until no step brings any network closer."""
    element, distance, num_sweeps = start
    num_groups, moving = len(task.symmetry.groups), np.ones(task.num_networks, bool)
    for sweep in range(max_sweeps):
        if not moving.any():
            break
        num_sweeps = num_sweeps + moving
        fell = np.zeros_like(moving)
        for g in np.asarray(jax.random.permutation(jax.random.fold_in(key, sweep), num_groups)):
            new = best_for_group(task, int(g), element, jnp.ones(num_groups), wanted=moving)
            new_distance = np.asarray(task.distances(new))
            lower = moving & (new_distance < distance)
            fell |= lower & (new_distance < distance * (1 - _LEAST_FALL))
            element, distance = _select(lower, new, element), np.where(lower, new_distance, distance)
        moving = fell
    return Descent(element, distance, num_sweeps)


def passed_through(task: Task) -> Element:
    """Each group matched in turn, in the order of the network, by the weights that the groups before it settle."""
    num_groups = len(task.symmetry.groups)
    element = task.identities()
    for g in range(num_groups):
        known = jnp.asarray(np.arange(num_groups) < g, float)
        element = best_for_group(task, g, element, known, wanted=np.ones(task.num_networks, bool))
    return element


def _matched(task: Task, descent: Descent) -> Matched:
    return Matched(descent.element, jnp.asarray(descent.distance), task.before, jnp.asarray(descent.num_sweeps))


def _closer(first: Descent, second: Descent) -> Descent:
    better = second.distance < first.distance
    pick = lambda one, other: np.where(better, other, one)
    return Descent(
        _select(better, second.element, first.element),
        pick(first.distance, second.distance),
        pick(first.num_sweeps, second.num_sweeps),
    )


def _select(chosen: Bool[np.ndarray, " batch"], first: Element, second: Element) -> Element:
    """The first element where `chosen`, else the second."""
    pick = lambda one, other: jnp.where(chosen.reshape(-1, *[1] * (one.ndim - 1)), one, other)
    return jax.tree.map(pick, first, second)
