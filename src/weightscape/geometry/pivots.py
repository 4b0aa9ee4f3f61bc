"""Pivots: the place whose weights fix the scale or the sign of each unit of a group.

A group that may be rescaled in K ways has K pivots: in pivot k the k-th way has exponent 1 and all others 0, so the
weights there tell it apart. For a layer it is the matrix of incoming weights, and the shift beside it where that is
asked for: ReLU(α (w·x + b)) = α ReLU(w·x + b) changes both alike.
"""

from collections.abc import Callable
from typing import NamedTuple

from weightscape.geometry.units import leaf_of, other_factors
from weightscape.symmetry import Member, Symmetry

Exponents = Callable[[Member], tuple[int, ...]]


class Pivot(NamedTuple):
    """The weights in `members` of group `group`, together, fix its way number `way`.

    - `members`: a single one for signs, where there are joint axes, and unless shifts are asked for.
    - `joint`: the axes of the units' weights, from 0 for the first after the units, along which units lie that are
      themselves changed by the same kind of symmetry and not settled before: those of later groups, or of this one.
    """

    group: int
    way: int
    members: tuple[int, ...]
    joint: tuple[int, ...]


def scale_pivots(symmetry: Symmetry, *, with_shifts: bool = False) -> tuple[Pivot, ...]:
    """The pivots of all rescalings, in the order of the groups.

    - `with_shifts`: with every other place that the way alone changes, as it changes the pivot, and no unsettled units
      lie in: for a layer its shift.
    """
    exponents = lambda member: member.scale_exponents
    pivots = _pivots(symmetry, exponents)
    return tuple(_widened(symmetry, exponents, pivot) for pivot in pivots) if with_shifts else pivots


def sign_pivots(symmetry: Symmetry) -> tuple[Pivot, ...]:
    """The pivots of all changes of sign, in the order of the groups."""
    return _pivots(symmetry, lambda member: member.sign_exponents)


def _pivots(symmetry: Symmetry, exponents: Exponents) -> tuple[Pivot, ...]:
    return tuple(
        _pivot(symmetry, exponents, g, way)
        for g, group in enumerate(symmetry.groups)
        for way in range(len(exponents(group.members[0])))
    )


def _pivot(symmetry: Symmetry, exponents: Exponents, group: int, way: int) -> Pivot:
    """The first member that tells the way apart: by preference one that no unsettled units lie in, and a matrix.

    The weights from a single input are no matrix; those to the next layer would be, and its signs are not settled.
    """

    def rank(m: int) -> tuple[bool, bool, int]:
        holds_own = any(g == group for along in other_factors(symmetry, group, m) for g, _ in along)
        num_factors = len(leaf_of(symmetry, group, m).sizes)
        return holds_own, bool(_joint(symmetry, exponents, group, m)), -num_factors

    member = min(_alone(symmetry, exponents, group, way), key=rank)
    return Pivot(group, way, (member,), _joint(symmetry, exponents, group, member))


def _widened(symmetry: Symmetry, exponents: Exponents, pivot: Pivot) -> Pivot:
    """The pivot with all places that tell its way apart; one with joint axes stays as it is."""
    if pivot.joint:
        return pivot
    alone = _alone(symmetry, exponents, pivot.group, pivot.way)
    settled = tuple(m for m in alone if not _joint(symmetry, exponents, pivot.group, m))
    return pivot._replace(members=settled)


def _alone(symmetry: Symmetry, exponents: Exponents, group: int, way: int) -> list[int]:
    """The members in which the way has exponent 1 and all others 0."""
    members = symmetry.groups[group].members
    wanted = tuple(int(k == way) for k in range(len(exponents(members[0]))))
    return [m for m, member in enumerate(members) if exponents(member) == wanted]


def _joint(symmetry: Symmetry, exponents: Exponents, group: int, member: int) -> tuple[int, ...]:
    unsettled = lambda g, m: g >= group and any(exponents(symmetry.groups[g].members[m]))
    factors = other_factors(symmetry, group, member)
    return tuple(axis for axis, along in enumerate(factors) if any(unsettled(g, m) for g, m in along))
