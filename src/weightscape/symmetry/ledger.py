"""What the tracer notes about units while it follows them through a program.

- joins: units that lie in the same place, so that they are one unit of the network; unit 0 is the one that must stay.
- cuts: sets of units that the program treats as a set, so that no permutation may lead out of them.
- equations between degrees (see `degrees.py`), one system for scales and one for signs.
- uses: which units are produced or consumed by weights, and when.
"""

import bisect
import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from weightscape.symmetry.axes import (
    Axis,
    Factor,
    Fixed,
    Repeat,
    Units,
    Value,
    axis,
    fixed_axis,
    lone_units,
    rows_before,
    size_of,
    units_of,
)

STAYS = 0
"""The unit that must stay, and the degree that is zero."""


class Refine(Exception):  # noqa: N818  it is no error: the tracer starts again with finer factors
    """A factor of a leaf must be a product of two, the second of size `inner`."""

    def __init__(self, path: str, factor: int, inner: int):
        super().__init__(path)
        self.path, self.factor, self.inner = path, factor, inner


class Place(NamedTuple):
    """Where the units of one factor of a leaf begin, how many there are, and where their degrees begin."""

    start: int
    size: int
    path: str
    factor: int
    degrees: int


class Equation(NamedTuple):
    """Σ_k coefficients[k] · degrees[k][i] = 0 for every i."""

    coefficients: tuple[float, ...]
    degrees: tuple[np.ndarray, ...]


@dataclasses.dataclass
class Ledger:
    """Notes of one pass through the program; a refined factor needs a new pass."""

    places: list[Place] = dataclasses.field(default_factory=list)
    joins: list[tuple[np.ndarray, np.ndarray]] = dataclasses.field(default_factory=list)
    cuts: list[np.ndarray] = dataclasses.field(default_factory=list)
    scale: list[Equation] = dataclasses.field(default_factory=list)
    sign: list[Equation] = dataclasses.field(default_factory=list)
    owners: list[np.ndarray] = dataclasses.field(default_factory=lambda: [np.zeros(1, int)])
    num_units: int = 1
    num_degrees: int = 1
    produced: dict[int, int] = dataclasses.field(default_factory=dict)
    consumed: dict[int, int] = dataclasses.field(default_factory=dict)
    lost: list[tuple[str, str]] = dataclasses.field(default_factory=list)

    def copy(self) -> "Ledger":
        """The same notes, to be continued on their own."""
        notes = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return dataclasses.replace(self, **{name: n.copy() for name, n in notes.items() if not isinstance(n, int)})

    def leaf(self, path: str, shape: Sequence[int], sizes: Mapping[int, Sequence[int]]) -> Value:
        """A leaf whose axis i is the product of the sizes `sizes[i]`, with new units for each factor."""
        axes, number = [], 0
        for i in range(len(shape)):
            factors = []
            for size in (size for size in sizes[i] if size > 0):
                self.places.append(Place(self.num_units, size, path, number, self.num_degrees))
                ids = np.arange(self.num_units, self.num_units + size)
                self.num_units, number = self.num_units + size, number + 1
                self.cuts.append(ids)
                factors.append(Units(ids, self.degrees_of(ids)))
            axes.append(tuple(factors))
        return Value(tuple(axes))

    def degrees_of(self, ids: np.ndarray) -> np.ndarray:
        """New degrees, one for each unit; zero for places that must stay."""
        made = np.arange(self.num_degrees, self.num_degrees + len(ids))
        self.num_degrees += len(ids)
        self.owners.append(ids)
        return np.where(ids == STAYS, STAYS, made)

    def fix(self, factors: Axis) -> Axis:
        """The same axis with all its units made to stay."""
        for factor in factors:
            if isinstance(factor, Units):
                self.joins.append((factor.ids, np.zeros_like(factor.ids)))
        return fixed_axis(size_of(factors))

    def fix_all(self, value: Value) -> None:
        """Make all units of a variable stay."""
        for factors in value.axes:
            self.fix(factors)

    def lose(self, name: str, values: Sequence[Value]) -> None:
        """Note that an operation which is not understood cost its operands their symmetry."""
        for value in values:
            for units in units_of(value):
                paths = {self.place(unit).path for unit in np.unique(units.ids).tolist() if unit != STAYS}
                self.lost.extend((name, path) for path in sorted(paths))
            self.fix_all(value)

    def split(self, factor: Factor, inner: int) -> tuple[Factor, Factor]:
        """A factor as a product of two, the second of size `inner`; units make the tracer start again."""
        outer = factor.size // inner
        if not isinstance(factor, Units):
            return type(factor)(outer), type(factor)(inner)
        if place := self._finer(factor, inner):
            raise Refine(place.path, place.factor, inner)
        self.fix((factor,))
        return Fixed(outer), Fixed(inner)

    def align(self, axes: Sequence[Axis]) -> list[tuple[Factor, ...]]:
        """Axes of one size as sequences of factors of the same sizes: what lies in the same places, side by side.

        Operations may repeat an axis of size one along the others; its unit stays then.
        """
        if not size_of(axes[0]):
            return [(Fixed(0),) * len(axes)]
        whole = max(map(size_of, axes))
        axes = [self.fix(factors) if size_of(factors) == 1 < whole else factors for factors in axes]
        flexible = [all(isinstance(factor, Repeat) for factor in factors) for factors in axes]
        stacks = [list(factors) for factors, repeats in zip(axes, flexible, strict=True) if not repeats]
        rows = []
        while any(stacks):
            size = min(stack[-1].size for stack in stacks)
            if any(stack[-1].size % size for stack in stacks):
                self.fix(tuple(factor for factors in axes for factor in factors))
                return [(Fixed(whole),) * len(axes)]
            row = iter([self._pop(stack, size) for stack in stacks])
            rows.append(tuple(Repeat(size) if repeats else next(row) for repeats in flexible))
        return rows[::-1] if rows or whole == 1 else [(Repeat(whole),) * len(axes)]

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """The same numbers, row by row, in another shape."""
        if 0 in shape:
            self.fix_all(value)
            return value._replace(axes=tuple(map(fixed_axis, shape)))
        stack = list(axis([factor for factors in value.axes for factor in factors if factor.size > 1]))
        made = []
        for size in reversed(shape):
            factors, needed = [], size
            while needed > 1 and (stack[-1].size % needed == 0 or needed % stack[-1].size == 0):
                factors.append(self._pop(stack, min(needed, stack[-1].size)))
                needed //= factors[-1].size
            if needed > 1:
                self.fix_all(value)
                return value._replace(axes=tuple(map(fixed_axis, shape)))
            made.append(axis(factors[::-1]))
        return value._replace(axes=self._seated(lone_units(value), made[::-1]))

    def use(self, where: dict[int, int], factors: Axis) -> None:
        """Note in `produced` or `consumed` when weights first did that to units."""
        for factor in factors:
            if isinstance(factor, Units):
                for unit in factor.ids.tolist():
                    where.setdefault(unit, len(where))

    def _pop(self, stack: list[Factor], size: int) -> Factor:
        """Take the last `size` places off a stack of factors."""
        factor = stack.pop()
        if factor.size == size:
            return factor
        outer, inner = self.split(factor, size)
        stack.append(outer)
        return inner

    def _seated(self, lone: Sequence[tuple[int, Units]], axes: list[Axis]) -> tuple[Axis, ...]:
        """Axes with lone units on those of size one that have as many rows before them; units without one stay."""
        before = rows_before(axes)
        for rows, unit in reversed(lone):
            seats = [i for i, factors in enumerate(axes) if not factors and before[i] == rows]
            if seats:
                axes[seats[-1]] = (unit,)
            else:
                self.fix((unit,))
        return tuple(axes)

    def _finer(self, units: Units, inner: int) -> Place | None:
        """The factor of a leaf that must be finer for a stretch of its units to be a product; None where none helps."""
        first = int(units.ids[0])
        if first == STAYS or not np.array_equal(units.ids, first + np.arange(units.size)):
            return None
        place = self.place(first)
        offset = first - place.start
        fits = offset + units.size <= place.size and offset % inner == 0 and place.size % inner == 0
        return place if fits else None

    def place(self, unit: int) -> Place:
        """The factor of a leaf that a unit belongs to."""
        return self.places[bisect.bisect_right([place.start for place in self.places], unit) - 1]
