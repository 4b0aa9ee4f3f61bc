"""The grids that a metanet works on: tokens for units, edges for tuples of units that share weights.

All units of all groups are tokens in one array, group after group; one more token, the last, belongs to no unit and
carries what concerns the whole network. Each tuple of groups that some weights lie between has a grid of edges.
"""

import dataclasses
import itertools

import numpy as np

from weightscape.metanet.charges import Charges, closure, swapped
from weightscape.metanet.features import Place
from weightscape.symmetry import Symmetry


@dataclasses.dataclass(frozen=True)
class Grid:
    """Edges between units of two or more groups.

    - `groups`: their numbers; a group may come twice.  `sizes`: how many units each has.
    - `slots`: the charges that its features may have.
    """

    groups: tuple[int, ...]
    sizes: tuple[int, ...]
    slots: tuple[Charges, ...]

    @property
    def twins(self) -> tuple[tuple[int, int], ...]:
        """The pairs of axes that belong to the same group."""
        return tuple(
            (a, b) for a, b in itertools.combinations(range(len(self.groups)), 2) if self.groups[a] == self.groups[b]
        )


@dataclasses.dataclass(frozen=True)
class Plan:
    """Tokens and grids for the places of a Symmetry.

    - `sizes`: how many tokens each group has; the last entry is the token of the whole network.
    - `slots`: the charges that features of tokens may have.
    """

    places: tuple[Place, ...]
    sizes: tuple[int, ...]
    slots: tuple[Charges, ...]
    grids: tuple[Grid, ...]

    @staticmethod
    def of(symmetry: Symmetry, places: tuple[Place, ...]) -> "Plan":
        """The plan for the places of a symmetry."""
        num_generators = max((group.num_signs for group in symmetry.groups), default=0)
        slots = closure(((1 << k,) for k in range(num_generators)), 1)
        sizes = (*(group.size for group in symmetry.groups), 1)
        between = sorted({place.groups for place in places if len(place.groups) > 1})
        return Plan(places, sizes, slots, tuple(_grid(places, groups) for groups in between))

    @property
    def num_tokens(self) -> int:
        """How many tokens there are."""
        return sum(self.sizes)

    def tokens(self, group: int) -> slice:
        """Where the tokens of a group lie; group −1 is the whole network."""
        starts = np.cumsum([0, *self.sizes]).tolist()
        group = group % len(self.sizes)
        return slice(starts[group], starts[group + 1])

    def token_slot(self, charge: int) -> int:
        """The number of the slot of a charge of tokens."""
        return self.slots.index((charge,))


def token_group(place: Place) -> int | None:
    """The group whose tokens hold a place: −1 for the whole network, None where it lies on edges."""
    return None if len(place.groups) > 1 else (*place.groups, -1)[0]


def _grid(places: tuple[Place, ...], groups: tuple[int, ...]) -> Grid:
    own = [place for place in places if place.groups == groups]
    charges = [place.charges for place in own]
    twins = Grid(groups, own[0].sizes, ()).twins
    for a, b in twins:
        charges += [swapped(charge, a, b) for charge in charges]
    return Grid(groups, own[0].sizes, closure(charges, len(groups)))
