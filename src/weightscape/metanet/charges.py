"""Signs of features: which flips of units change them, and how products of features combine.

A feature of unit i with charge c is multiplied by Π_k σ_ki over the bits k of c when unit i changes its signs σ_i.
Charges add without carry under products:

    c(x · y) = c(x) xor c(y)

so features of all charges are a graded algebra: linear maps act within a charge, only charge 0 may have a shift or go
through any function, and products lead from two charges to a third. Features between units have one charge for each of
their units.

A *slot* is one of the charges that a block keeps features for. Slots are closed under products, and slot 0 is charge 0.
"""

import itertools
from collections.abc import Iterable

Charges = tuple[int, ...]
"""One charge for each of the units that a feature belongs to."""


def closure(charges: Iterable[Charges], rank: int) -> tuple[Charges, ...]:
    """All products of the given charges, in order: the subgroup of (ℤ₂)ⁿ that they generate."""
    slots = {(0,) * rank}
    for charge in charges:
        slots |= {multiply(slot, charge) for slot in slots}
    return tuple(sorted(slots))


def multiply(left: Charges, right: Charges) -> Charges:
    """The charges of a product."""
    return tuple(a ^ b for a, b in zip(left, right, strict=True))


def factor_pairs(slots: tuple[Charges, ...]) -> tuple[tuple[tuple[int, int], ...], ...]:
    """For each slot, the pairs of slots whose products lie in it, by their numbers."""
    numbers = {slot: i for i, slot in enumerate(slots)}
    pairs: list[list[tuple[int, int]]] = [[] for _ in slots]
    for (i, left), (j, right) in itertools.product(enumerate(slots), repeat=2):
        pairs[numbers[multiply(left, right)]].append((i, j))
    return tuple(tuple(each) for each in pairs)


def swapped(charges: Charges, first: int, second: int) -> Charges:
    """The charges with two of the units exchanged."""
    entries = list(charges)
    entries[first], entries[second] = entries[second], entries[first]
    return tuple(entries)
