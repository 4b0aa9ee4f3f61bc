"""Operations that cut arrays in pieces, or put pieces together.

A slice of units is a set that no permutation may lead out of; units end to end, of several groups, are one sequence.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.extend.core import Literal

from weightscape.symmetry.axes import Axis, Factor, Fixed, Repeat, Units, Value, axis, fixed_axis, repeat_axis, size_of
from weightscape.symmetry.degree_rules import NONE, SUM
from weightscape.symmetry.ledger import STAYS, Ledger
from weightscape.symmetry.pointwise import joined, pointwise

Values = Sequence[Value]


def _cut_out(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    options = equation.params
    strides = options["strides"] or (1,) * len(options["start_indices"])
    bounds = zip(options["start_indices"], options["limit_indices"], strides, strict=True)
    axes = [_slice(ledger, a, *map(int, where)) for a, where in zip(values[0].axes, bounds, strict=True)]
    return [values[0]._replace(axes=tuple(axes))]


def _split(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    along, made, start = equation.params["axis"], [], 0
    for size in map(int, equation.params["sizes"]):
        axes = list(values[0].axes)
        axes[along] = _slice(ledger, axes[along], start, start + size, 1)
        made.append(values[0]._replace(axes=tuple(axes)))
        start += size
    return made


def _cut_out_anywhere(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    """A slice whose place may depend on anything: axes that are taken whole pass, the others stay."""
    sizes, axes = equation.params["slice_sizes"], []
    for factors, size, start in zip(values[0].axes, sizes, equation.invars[1:], strict=True):
        if size == size_of(factors):
            axes.append(factors)
        elif isinstance(start, Literal):
            begin = min(max(int(start.val), 0), size_of(factors) - size)
            axes.append(_slice(ledger, factors, begin, begin + size, 1))
        else:
            axes.append(_resized(ledger, factors, size))
    of_inputs = any(value.of_inputs for value in values)
    return [values[0]._replace(axes=tuple(axes), of_inputs=of_inputs)]


def _put_in(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    """An update somewhere in an array: axes that are replaced whole are joined, the others stay."""
    whole, part = values[:2]
    narrow = [i for i, (n, m) in enumerate(zip(whole.shape, part.shape, strict=True)) if n != m]
    held = [_stay(ledger, value, narrow, whole.shape) for value in (whole, part)]
    return [pointwise(ledger, held, SUM, SUM)]


def _concatenate(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    along = equation.params["dimension"]
    end_to_end = _concatenated(ledger, [value.axes[along] for value in values], values)
    others = [value._replace(axes=(*value.axes[:along], *value.axes[along + 1 :])) for value in values]
    beside = pointwise(ledger, others, SUM, SUM)
    axes = (*beside.axes[:along], end_to_end, *beside.axes[along:])
    return [beside._replace(axes=axes, is_zero=all(value.is_zero for value in values))]


def _pad(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    """Places are added that hold a constant; unless it is zero, nothing may be rescaled."""
    value, filling = values
    config = equation.params["padding_config"]
    if not filling.is_zero and any(any(places) for places in config):
        value = pointwise(ledger, [value], NONE, NONE)
    axes = [_padded(ledger, factors, *places) for factors, places in zip(value.axes, config, strict=True)]
    return [value._replace(axes=tuple(axes))]


def _gather(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    """Rows of a table: axes that are taken whole pass, the one that is looked up stays."""
    table, indices = values
    ledger.fix_all(indices)
    numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    kept = []
    for i, factors in enumerate(table.axes):
        if i in gone:
            ledger.fix(factors)
        else:
            kept.append(factors if sizes[i] == size_of(factors) else _resized(ledger, factors, sizes[i]))
    axes = [fixed_axis(size) for size in equation.outvars[0].aval.shape]
    for i, factors in zip(numbers.offset_dims, kept, strict=True):
        axes[i] = factors
        if indices.of_inputs and not table.of_inputs:
            ledger.use(ledger.produced, factors)
    return [Value(tuple(axes), of_inputs=table.of_inputs or indices.of_inputs)]


def _slice(ledger: Ledger, factors: Axis, start: int, limit: int, stride: int) -> Axis:
    """Every `stride`-th place from `start` on, before `limit`."""
    if (start, stride) == (0, 1) and limit == size_of(factors):
        return factors
    number = math.ceil((limit - start) / stride)
    if len(factors) == 1:
        return axis([_taken(ledger, factors[0], range(start, limit, stride))])
    inner = size_of(factors[1:])
    if stride == 1 and start % inner == 0 and limit % inner == 0:
        return axis([_taken_of_product(ledger, factors[0], range(start // inner, limit // inner)), *factors[1:]])
    if stride == 1 and start // inner == (limit - 1) // inner:
        _taken_of_product(ledger, factors[0], range(start // inner, start // inner + 1))
        return _slice(ledger, factors[1:], start % inner, (limit - 1) % inner + 1, 1)
    return _resized(ledger, factors, number)


def _taken(ledger: Ledger, factor: Factor, places: range) -> Factor:
    """Some places of a factor."""
    if not isinstance(factor, Units):
        return type(factor)(len(places))
    taken = factor.taken(list(places))
    ledger.cuts.append(taken.ids)
    return taken


def _taken_of_product(ledger: Ledger, factor: Factor, places: range) -> Factor:
    """Some places of a factor of a product. A single one has no axis to be followed along, so its unit stays."""
    taken = _taken(ledger, factor, places)
    if len(places) > 1:
        return taken
    ledger.fix((taken,))
    return Fixed(len(places))


def _resized(ledger: Ledger, factors: Axis, size: int) -> Axis:
    """An axis of another size of which nothing is known but that its places stay, or that they are all the same."""
    if all(isinstance(factor, Repeat) for factor in factors):
        return repeat_axis(size)
    ledger.fix(factors)
    return fixed_axis(size)


def _stay(ledger: Ledger, value: Value, which: Sequence[int], shape: Sequence[int]) -> Value:
    """A value whose axes `which` stay, with the given sizes."""
    axes = [_fixed_as(ledger, a, shape[i]) if i in which else a for i, a in enumerate(value.axes)]
    return value._replace(axes=tuple(axes))


def _fixed_as(ledger: Ledger, factors: Axis, size: int) -> Axis:
    ledger.fix(factors)
    return fixed_axis(size)


def _concatenated(ledger: Ledger, axes: Sequence[Axis], values: Values) -> Axis:
    """Axes end to end. Where each is a product, all but the first factors must lie in the same places."""
    axes, values = zip(*(pair for pair in zip(axes, values, strict=True) if size_of(pair[0])), strict=True)
    inner = [size_of(factors[1:]) for factors in axes if factors]
    if len(inner) < len(axes) or len(set(inner)) > 1 or any(len(f) != len(axes[0]) for f in axes):
        same = all(not factors or len(factors) == 1 for factors in axes)
        return _end_to_end(ledger, axes) if same else fixed_axis(sum(size_of(ledger.fix(f)) for f in axes))
    rows = ledger.align([factors[1:] for factors in axes]) if inner[0] > 1 else []
    rest = [joined(ledger, row, values, SUM, SUM) for row in rows]
    return axis([*_end_to_end(ledger, [factors[:1] for factors in axes]), *rest])


def _end_to_end(ledger: Ledger, axes: Sequence[Axis]) -> Axis:
    """Single factors, or axes of one place, as one factor."""
    if not any(isinstance(factor, Units) for factors in axes for factor in factors):
        return fixed_axis(sum(map(size_of, axes)))
    parts = [factors[0] if factors else Fixed(1) for factors in axes]
    zeros = lambda factor: np.full(factor.size, STAYS)
    ids = [part.ids if isinstance(part, Units) else zeros(part) for part in parts]
    degrees = [part.degrees if isinstance(part, Units) else zeros(part) for part in parts]
    return (Units(np.concatenate(ids), np.concatenate(degrees)),)


def _padded(ledger: Ledger, factors: Axis, low: int, high: int, interior: int) -> Axis:
    if (low, high, interior) == (0, 0, 0):
        return factors
    size = size_of(factors)
    size = low + size + max(size - 1, 0) * interior + high
    if len(factors) != 1 or not isinstance(factors[0], Units) or min(low, high) < 0:
        ledger.fix(factors)
        return fixed_axis(size)
    ids, degrees = np.full(size, STAYS), np.full(size, STAYS)
    places = low + np.arange(factors[0].size) * (interior + 1)
    ids[places], degrees[places] = factors[0]
    return (Units(ids, degrees),)


CUTS = {
    "slice": _cut_out,
    "split": _split,
    "dynamic_slice": _cut_out_anywhere,
    "dynamic_update_slice": _put_in,
    "concatenate": _concatenate,
    "pad": _pad,
    "gather": _gather,
}
"""What to do with each operation that cuts or joins arrays, by its name."""
