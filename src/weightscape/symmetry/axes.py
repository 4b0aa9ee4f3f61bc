"""Axes as products of factors: what the tracer knows of the array behind a variable.

An axis is a row-major product of factors, each of which is

- `Units`: a sequence of units, which may be permuted if all weights that know them are permuted alike;
- `Fixed`: places that differ and must stay where they are, such as inputs, outputs and positions in an image;
- `Repeat`: places that all hold the same, as after a broadcast.

An axis of size one has no factors, or a single unit. Where that unit is multiplied by a number, the whole variable is:
so it may sit on any axis of size one, and it stays where it would lie along a product with others.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Fixed(NamedTuple):
    """Places that must stay."""

    size: int


class Repeat(NamedTuple):
    """Places that hold the same numbers."""

    size: int


class Units(NamedTuple):
    """Units by their numbers, 0 for a place that must stay, and the number of the degree of each (see `degrees.py`)."""

    ids: np.ndarray
    degrees: np.ndarray

    @property
    def size(self) -> int:
        return len(self.ids)

    def taken(self, places: Any) -> "Units":
        """The units at some places."""
        return Units(self.ids[places], self.degrees[places])


Factor = Fixed | Repeat | Units
Axis = tuple[Factor, ...]


class Value(NamedTuple):
    """A variable: its axes, whether it is known to be zero, and whether it depends on the inputs."""

    axes: tuple[Axis, ...]
    is_zero: bool = False
    of_inputs: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(size_of(axis) for axis in self.axes)


def axis(factors: list[Factor] | Axis) -> Axis:
    """Factors as an axis: neighbours that say the same are one; those of size one go, but for a unit that is alone."""
    if any(factor.size == 0 for factor in factors):
        return (Fixed(0),)
    made: list[Factor] = []
    for factor in factors:
        if made and not isinstance(factor, Units) and type(factor) is type(made[-1]):
            made[-1] = type(factor)(made[-1].size * factor.size)
        elif factor.size > 1:
            made.append(factor)
    return tuple(made) or tuple(factor for factor in factors if isinstance(factor, Units))[:1]


def size_of(factors: Axis) -> int:
    """The size of an axis."""
    return math.prod(factor.size for factor in factors)


def fixed_axis(size: int) -> Axis:
    """An axis whose places must stay."""
    return axis((Fixed(size),))


def repeat_axis(size: int) -> Axis:
    """An axis along which nothing changes."""
    return axis((Repeat(size),))


def units_of(value: Value) -> list[Units]:
    """All factors of a variable that are units."""
    return [factor for factors in value.axes for factor in factors if isinstance(factor, Units)]


def lone_units(value: Value) -> list[tuple[int, Units]]:
    """The units on axes of size one, each with the number of rows before its axis."""
    starts = zip(value.axes, rows_before(value.axes), strict=True)
    return [
        (rows, units) for factors, rows in starts for units in factors if isinstance(units, Units) and units.size == 1
    ]


def rows_before(axes: Sequence[Axis]) -> list[int]:
    """For each axis the product of the sizes of those before it."""
    return [math.prod(map(size_of, axes[:i])) for i in range(len(axes))]


def constant(array: Any) -> Value:
    """A constant: along an axis where its entries differ its places must stay."""
    array = np.asarray(array)
    axes = tuple(
        repeat_axis(size) if size and np.all(array == array.take([0], i)) else fixed_axis(size)
        for i, size in enumerate(array.shape)
    )
    return Value(axes, is_zero=bool(array.dtype.kind in "fiub" and not np.any(array)))
