"""Groups of units, from the tracer's notes.

Joined units are one unit of the network. Two of those may change places if their parts have the same colours: then the
program treats them alike.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from weightscape.core.layout import layer_of
from weightscape.symmetry.colours import colours_of
from weightscape.symmetry.degrees import exponents, rows_by_unit
from weightscape.symmetry.group import Group, LeafFactors, Member
from weightscape.symmetry.ledger import STAYS, Ledger, Place
from weightscape.symmetry.tracer import Factorisation


class _Found(NamedTuple):
    """A group while it is put together: for each place the units there, unit by unit; a label of its first unit."""

    places: tuple[tuple[Place, np.ndarray], ...]
    label: int

    @property
    def size(self) -> int:
        return len(self.places[0][1])


def groups_of(ledger: Ledger, factorisation: Factorisation) -> tuple[Group, ...]:
    """All groups, in the order in which the program makes their units."""
    labels = _labels(ledger)
    found = [_ordered(ledger, group, factorisation) for group in _interchangeable(ledger, labels)]
    wanted = [group.label for group in found]
    scale = rows_by_unit(ledger.scale, ledger, labels, wanted)
    sign = rows_by_unit(ledger.sign, ledger, labels, wanted)
    made = []
    for group in (group for group in found if scale[group.label]):  # no equation: a leaf that the program never reads
        unknowns = [place.degrees + int(units[0]) - place.start for place, units in group.places]
        ways = exponents(scale[group.label], unknowns), exponents(sign[group.label], unknowns, modulus=2)
        if group.size > 1 or any(ways):
            made.append((_first_use(ledger, group), _group(ledger, group, *ways)))
    return _named([group for _, group in sorted(made, key=lambda pair: pair[0])])


def leaf_factors(groups: Sequence[Group], factorisation: Factorisation) -> tuple[LeafFactors, ...]:
    """For each leaf its factors, and which members of which groups lie along them."""
    sizes = {path: tuple(size for sizes in axes for size in sizes if size > 0) for path, axes in factorisation.items()}
    return leaf_factors_of(groups, [LeafFactors(path, own, ()) for path, own in sizes.items()])


def leaf_factors_of(groups: Sequence[Group], leaves: Sequence[LeafFactors]) -> tuple[LeafFactors, ...]:
    """The same leaves with the members of these groups."""
    along = {leaf.path: [[] for _ in leaf.sizes] for leaf in leaves}
    for g, group in enumerate(groups):
        for m, member in enumerate(group.members):
            along[member.path][member.factor].append((g, m))
    return tuple(LeafFactors(leaf.path, leaf.sizes, tuple(map(tuple, along[leaf.path]))) for leaf in leaves)


def trimmed(
    groups: Sequence[Group], leaves: Sequence[LeafFactors]
) -> tuple[tuple[Group, ...], tuple[LeafFactors, ...]]:
    """Groups and leaves without the factors of size one that no group lies along; the others are counted anew."""
    needed = lambda leaf, i: leaf.sizes[i] > 1 or leaf.members[i]
    kept = {leaf.path: [i for i in range(len(leaf.sizes)) if needed(leaf, i)] for leaf in leaves}
    counted = lambda member: dataclasses.replace(member, factor=kept[member.path].index(member.factor))
    groups = tuple(dataclasses.replace(group, members=tuple(map(counted, group.members))) for group in groups)
    fewer = [LeafFactors(leaf.path, tuple(leaf.sizes[i] for i in kept[leaf.path]), ()) for leaf in leaves]
    return groups, leaf_factors_of(groups, fewer)


def _labels(ledger: Ledger) -> np.ndarray:
    """A number for each unit, the same for joined ones."""
    left = np.concatenate([pair[0] for pair in ledger.joins] or [np.zeros(0, int)])
    right = np.concatenate([pair[1] for pair in ledger.joins] or [np.zeros(0, int)])
    graph = coo_array((np.ones(len(left)), (left, right)), shape=(ledger.num_units, ledger.num_units))
    return connected_components(graph, directed=False)[1]


def _interchangeable(ledger: Ledger, labels: np.ndarray) -> list[_Found]:
    """Units of the network by the colours of their parts. Two parts of one colour could be told apart by neither."""
    colours = colours_of(ledger)
    parts: dict[int, list[int]] = {}
    for unit in np.flatnonzero(labels != labels[STAYS]).tolist():
        parts.setdefault(int(labels[unit]), []).append(unit)
    alike: dict[tuple[int, ...], list[list[int]]] = {}
    for units in parts.values():
        units.sort(key=colours.__getitem__)
        signature = tuple(colours[units].tolist())
        if len(set(signature)) == len(signature):
            alike.setdefault(signature, []).append(units)
    return [_found(ledger, np.array(sorted(units)), labels) for units in alike.values()]


def _found(ledger: Ledger, units: np.ndarray, labels: np.ndarray) -> _Found:
    places = tuple((ledger.place(int(column[0])), column) for column in units.T)
    return _Found(places, int(labels[units[0, 0]]))


def _ordered(ledger: Ledger, group: _Found, factorisation: Factorisation) -> _Found:
    """Members in the order in which they should settle scales: producing matrices that know the group once, first."""
    paths = [place.path for place, _ in group.places]

    def rank(member: tuple[Place, np.ndarray]) -> tuple:
        place, units = member
        produces, consumes = int(units[0]) in ledger.produced, int(units[0]) in ledger.consumed
        is_matrix = math.prod(size for sizes in factorisation[place.path] for size in sizes) > place.size
        alone = paths.count(place.path) == 1
        return (not (produces and not consumes), not is_matrix, not alone, ledger.produced.get(int(units[0]), 0))

    return group._replace(places=tuple(sorted(group.places, key=rank)))


def _first_use(ledger: Ledger, group: _Found) -> int:
    times = [ledger.produced[int(units[0])] for _, units in group.places if int(units[0]) in ledger.produced]
    return min(times, default=len(ledger.produced))


def _group(ledger: Ledger, group: _Found, scale: Sequence[tuple], sign: Sequence[tuple]) -> Group:
    members = tuple(
        Member(
            place.path,
            place.factor,
            tuple((units - place.start).tolist()),
            produces=int(units[0]) in ledger.produced,
            consumes=int(units[0]) in ledger.consumed,
            scale_exponents=tuple(way[i] for way in scale),
            sign_exponents=tuple(way[i] for way in sign),
        )
        for i, (place, units) in enumerate(group.places)
    )
    return Group(layer_of(members[0].path), group.size, members)


def _named(groups: Sequence[Group]) -> tuple[Group, ...]:
    """Groups with names of their own: those that share one are counted."""
    counts: dict[str, int] = {}
    named = []
    for group in groups:
        counts[group.name] = number = counts.get(group.name, 0) + 1
        named.append(Group(group.name if number == 1 else f"{group.name} ({number})", group.size, group.members))
    return tuple(named)
