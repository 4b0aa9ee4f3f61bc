"""Operations that act on each place alone: what lies in the same places is joined, and degrees follow a rule."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from weightscape.symmetry.axes import Axis, Factor, Fixed, Repeat, Units, Value, axis
from weightscape.symmetry.degree_rules import ANY, COMPARE, NONE, PASS, SUM, Rule, equations, product
from weightscape.symmetry.ledger import Ledger


def pointwise(ledger: Ledger, values: Sequence[Value], scale: Rule, sign: Rule) -> Value:
    """The result of an operation on each place; operands without axes act on all places alike."""
    shape = max((value.shape for value in values), key=len)
    whole = [value if len(value.axes) == len(shape) else _spread(value, shape) for value in values]
    of_inputs = any(value.of_inputs for value in values)
    axes = tuple(_axis(ledger, whole, i, scale, sign) for i in range(len(shape)))
    for value in whole if of_inputs else ():
        for factors in value.axes if not value.of_inputs else ():
            ledger.use(ledger.produced, factors)
    moves = len(values) == 1 and scale == PASS
    return Value(axes, is_zero=moves and values[0].is_zero, of_inputs=of_inputs)


def _spread(value: Value, shape: tuple[int, ...]) -> Value:
    return value._replace(axes=tuple(axis((Repeat(size),)) for size in shape))


def _axis(ledger: Ledger, values: Sequence[Value], i: int, scale: Rule, sign: Rule) -> Axis:
    rows = ledger.align([value.axes[i] for value in values])
    return axis([joined(ledger, row, values, scale, sign) for row in rows])


def joined(ledger: Ledger, row: Sequence[Factor], values: Sequence[Value], scale: Rule, sign: Rule) -> Factor:
    """What lies in the same places, as one factor."""
    units = [factor for factor in row if isinstance(factor, Units)]
    if not units or any(isinstance(factor, Fixed) for factor in row):
        ledger.fix(tuple(units))
        fixed = units or any(isinstance(factor, Fixed) for factor in row)
        return (Fixed if fixed else Repeat)(row[0].size)
    for other in units[1:]:
        ledger.joins.append((units[0].ids, other.ids))
    degrees = [factor.degrees if isinstance(factor, Units) else None for factor in row]
    if scale == sign == PASS:
        return units[0]
    made = ledger.degrees_of(units[0].ids)
    free = [value.is_zero for value in values]
    ledger.scale.extend(equations(scale, made, degrees, free))
    ledger.sign.extend(equations(sign, made, degrees, free))
    return Units(units[0].ids, made)


def _unary(scale: Rule, sign: Rule) -> Any:
    """The rule of an operation on one operand."""
    return lambda ledger, equation, values: [pointwise(ledger, values[:1], scale, sign)]


def _nary(scale: Rule, sign: Rule) -> Any:
    """The rule of an operation on several operands."""
    return lambda ledger, equation, values: [pointwise(ledger, values, scale, sign)]


def _select(ledger: Ledger, equation: Any, values: Sequence[Value]) -> list[Value]:
    """Cases must have equal degrees, the condition none."""
    cases = pointwise(ledger, values[1:], SUM, SUM)
    condition = pointwise(ledger, [values[0]], NONE, NONE)
    return [pointwise(ledger, [cases, condition], product(1.0, 0.0), product(1.0, 0.0))]


def _integer_power(ledger: Ledger, equation: Any, values: Sequence[Value]) -> list[Value]:
    rule = product(float(equation.params["y"]))
    return [pointwise(ledger, values, rule, rule)]


def _convert(ledger: Ledger, equation: Any, values: Sequence[Value]) -> list[Value]:
    """Rounding to another floating-point type keeps degrees, to whole numbers it does not."""
    kept = (
        np.issubdtype(equation.outvars[0].aval.dtype, np.inexact) or equation.outvars[0].aval.dtype.name == "bfloat16"
    )
    rule = PASS if kept else NONE
    return [pointwise(ledger, values, rule, rule)._replace(is_zero=values[0].is_zero)]


_ODD = ("tanh", "sin", "tan", "asin", "atan", "sinh", "asinh", "atanh", "erf", "erf_inv", "round")
_EVEN = ("cos", "cosh")
_CURVED = (
    "exp",
    "exp2",
    "log",
    "log1p",
    "expm1",
    "logistic",
    "acos",
    "acosh",
    "erfc",
    "lgamma",
    "digamma",
    "pow",
    "atan2",
)
_SPECIAL = ("igamma", "igammac", "bessel_i0e", "bessel_i1e", "polygamma", "regularized_incomplete_beta")
_STEPPED = ("floor", "ceil", "rem", "clamp", "nextafter")
_BITS = (
    "not",
    "and",
    "or",
    "xor",
    "shift_left",
    "shift_right_logical",
    "shift_right_arithmetic",
    "population_count",
    "clz",
)
_SAME = (
    "neg",
    "copy",
    "copy_p",
    "real",
    "stop_gradient",
    "reduce_precision",
    "name",
    "optimization_barrier",
    "sharding_constraint",
    "pvary",
)

POINTWISE = {
    **{name: _unary(NONE, PASS) for name in _ODD},
    **{name: _unary(NONE, ANY) for name in _EVEN},
    **{name: _nary(NONE, NONE) for name in (*_CURVED, *_SPECIAL, *_STEPPED, *_BITS)},
    **{name: lambda ledger, equation, values: list(values) for name in _SAME},
    **{name: _nary(SUM, SUM) for name in ("add", "add_any", "sub")},
    **{name: _nary(SUM, NONE) for name in ("max", "min")},
    **{name: _nary(COMPARE, NONE) for name in ("lt", "le", "gt", "ge")},
    **{name: _nary(COMPARE, COMPARE) for name in ("eq", "ne")},
    "mul": _nary(product(1.0, 1.0), product(1.0, 1.0)),
    "div": _nary(product(1.0, -1.0), product(1.0, -1.0)),
    "square": _unary(product(2.0), product(2.0)),
    "integer_pow": _integer_power,
    "sqrt": _unary(product(0.5), NONE),
    "rsqrt": _unary(product(-0.5), NONE),
    "abs": _unary(PASS, ANY),
    "sign": _unary(ANY, PASS),
    "is_finite": _unary(ANY, ANY),
    "convert_element_type": _convert,
    "select_n": _select,
}
"""What to do with each operation that acts on each place alone, by its name."""
