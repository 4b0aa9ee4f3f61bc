"""Operations that only move or repeat the entries of arrays."""

from collections.abc import Sequence
from typing import Any

from weightscape.symmetry.axes import Repeat, Units, Value, axis, fixed_axis, repeat_axis, size_of
from weightscape.symmetry.degree_rules import SUM
from weightscape.symmetry.ledger import Ledger
from weightscape.symmetry.pointwise import pointwise

Values = Sequence[Value]


def _broadcast(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    shape, where = equation.params["shape"], equation.params["broadcast_dimensions"]
    axes = [repeat_axis(size) for size in shape]
    for factors, size, i in zip(values[0].axes, values[0].shape, where, strict=True):
        if size == shape[i]:
            axes[i] = factors
        else:
            ledger.fix(factors)
    return [values[0]._replace(axes=tuple(axes))]


def _transpose(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    return [values[0]._replace(axes=tuple(values[0].axes[i] for i in equation.params["permutation"]))]


def _reshape(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    return [ledger.reshape(values[0], equation.outvars[0].aval.shape)]


def _squeeze(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    """Axes of size one go, and a unit that lies there stays."""
    (value,), gone = values, equation.params["dimensions"]
    for i in gone:
        ledger.fix(value.axes[i])
    return [value._replace(axes=tuple(factors for i, factors in enumerate(value.axes) if i not in gone))]


def _reverse(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    turned = lambda factor: factor.taken(slice(None, None, -1)) if isinstance(factor, Units) else factor
    dimensions = equation.params["dimensions"]
    axes = [tuple(map(turned, a)) if i in dimensions else a for i, a in enumerate(values[0].axes)]
    return [values[0]._replace(axes=tuple(axes))]


def _iota(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    shape, dimension = equation.params["shape"], equation.params["dimension"]
    axes = (fixed_axis(size) if i == dimension else repeat_axis(size) for i, size in enumerate(shape))
    return [Value(tuple(axes))]


def _stack(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    """Arrays side by side along a new axis, whose places stay."""
    beside, along = pointwise(ledger, values, SUM, SUM), equation.params["axis"]
    axes = (*beside.axes[:along], fixed_axis(len(values)), *beside.axes[along:])
    return [beside._replace(axes=axes, is_zero=all(value.is_zero for value in values))]


def _unstack(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    (value,), along = values, equation.params["axis"]
    axes = (*value.axes[:along], *value.axes[along + 1 :])
    ledger.fix(value.axes[along])
    return [value._replace(axes=axes)] * value.shape[along]


def _tile(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    """Each axis again and again; a unit that is alone stays."""
    reps = equation.params["reps"]
    for number, factors in zip(reps, values[0].axes, strict=True):
        if number > 1 and size_of(factors) == 1:
            ledger.fix(factors)
    axes = (axis([Repeat(number), *factors]) for number, factors in zip(reps, values[0].axes, strict=True))
    return [values[0]._replace(axes=tuple(axes))]


MOVES = {
    "broadcast_in_dim": _broadcast,
    "transpose": _transpose,
    "reshape": _reshape,
    "squeeze": _squeeze,
    "expand_dims": _reshape,
    "rev": _reverse,
    "iota": _iota,
    "stack": _stack,
    "unstack": _unstack,
    "tile": _tile,
}
"""What to do with each operation that moves entries, by its name."""
