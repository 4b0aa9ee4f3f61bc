"""The null space of a small system of linear equations with whole or rational coefficients, exactly.

{v : Σ_j a_ij v_j = 0 for all i}      over the rational numbers, or modulo 2
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

Row = Mapping[int, Fraction | int]
"""An equation: the coefficients that are not zero, by column."""


def null_space(rows: Sequence[Row], columns: Iterable[int], *, modulus: int | None = None) -> list[dict[int, Fraction]]:
    """A basis of the null space in reduced echelon form.

    - `columns`: all unknowns. Each vector is 1 at its pivot, where all others are 0; pivots come early in this order.
    - `modulus`: 2 for arithmetic modulo 2, None for rational numbers.
    """
    columns = list(columns)
    # Eliminating from the last column on leaves the earliest ones free; those are the pivots of the null space.
    pivots = _eliminate(rows, columns[::-1], modulus)
    basis = []
    for free in (column for column in columns if column not in pivots):
        vector = {free: Fraction(1)}
        vector.update({pivot: _reduced(-row[free], modulus) for pivot, row in pivots.items() if free in row})
        basis.append({column: value for column, value in vector.items() if value})
    return basis


def _eliminate(rows: Sequence[Row], order: Sequence[int], modulus: int | None) -> dict[int, dict[int, Fraction]]:
    """The equations in reduced echelon form, by their pivots."""
    rank = {column: i for i, column in enumerate(order)}
    pivots: dict[int, dict[int, Fraction]] = {}
    for row in rows:
        left = _clean(row, modulus)
        for pivot in [column for column in left if column in pivots]:
            left = _subtract(left, left.get(pivot, Fraction(0)), pivots[pivot], modulus)
        if not left:
            continue
        pivot = min(left, key=rank.__getitem__)
        lead = left[pivot]
        left = {column: value / lead for column, value in left.items()}
        for other, known in pivots.items():
            if pivot in known:
                pivots[other] = _subtract(known, known[pivot], left, modulus)
        pivots[pivot] = left
    return pivots


def _subtract(row: dict, factor: Fraction, other: dict, modulus: int | None) -> dict[int, Fraction]:
    made = dict(row)
    for column, value in other.items():
        made[column] = made.get(column, Fraction(0)) - factor * value
    return _clean(made, modulus)


def _clean(row: Row, modulus: int | None) -> dict[int, Fraction]:
    reduced = {column: _reduced(Fraction(value), modulus) for column, value in row.items()}
    return {column: value for column, value in reduced.items() if value}


def _reduced(value: Fraction, modulus: int | None) -> Fraction:
    return value if modulus is None else Fraction(value.numerator % modulus)
