"""Exponents of scalings and signs, from the equations between degrees.

The weights of unit i in one place are multiplied by s_i^d, with a degree d that is unknown for each place. Every
operation of the program asks something of the degrees of what goes in and comes out (`degree_rules.py`): a linear
system, whose solutions are all the ways to rescale units that the operations allow. For signs it is solved modulo 2.
By symmetry the solutions for one unit of a group serve for all.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from weightscape.symmetry.ledger import STAYS, Equation, Ledger
from weightscape.symmetry.null_space import null_space

Rows = list[dict[int, Fraction]]


def rows_by_unit(
    equations: Sequence[Equation], ledger: Ledger, labels: np.ndarray, wanted: Sequence[int]
) -> dict[int, Rows]:
    """The equations that speak of the units with the labels `wanted`, for each of these."""
    owners = labels[np.concatenate(ledger.owners)]
    rows: dict[int, Rows] = {label: [] for label in wanted}
    for equation in equations:
        degrees = np.stack(np.broadcast_arrays(*equation.degrees))
        # Joined units have the same label, so all degrees of a row that are not zero belong to one.
        spoken = np.where(degrees == STAYS, -1, owners[degrees]).max(0)
        for i in np.flatnonzero(np.isin(spoken, list(rows))):
            rows[int(spoken[i])].append(_row(equation.coefficients, degrees[:, i]))
    return rows


def exponents(rows: Rows, unknowns: Sequence[int], *, modulus: int | None = None) -> list[tuple[int, ...]]:
    """The exponents at the places `unknowns`, one tuple for each independent way.

    Each way has a place of its own where the others have 0, as early among the unknowns as can be.
    """
    inner = {column for row in rows for column in row} - set(unknowns)
    basis = null_space(rows, [*unknowns, *sorted(inner)], modulus=modulus)
    found = [[vector.get(unknown, Fraction(0)) for unknown in unknowns] for vector in basis]
    return [_whole(values) for values in found if any(values)]


def _row(coefficients: Sequence[float], degrees: np.ndarray) -> dict[int, Fraction]:
    row: dict[int, Fraction] = {}
    for coefficient, degree in zip(coefficients, degrees.tolist(), strict=True):
        if degree != STAYS:
            row[degree] = row.get(degree, Fraction(0)) + Fraction(coefficient)
    return row


def _whole(values: Sequence[Fraction]) -> tuple[int, ...]:
    """The smallest whole numbers in the same proportions."""
    common = math.lcm(*(value.denominator for value in values))
    numbers = [int(value * common) for value in values]
    return tuple(number // math.gcd(*numbers) for number in numbers)
