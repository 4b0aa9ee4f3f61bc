"""Operations that sum over axes: products, convolutions, reductions and pooling.

Whatever is summed over must not depend on the order of the terms, and each term must keep its scale and sign: the
degrees of its factors add up to zero.
"""

from collections.abc import Sequence
from typing import Any

from weightscape.symmetry.axes import Axis, Units, Value, axis, fixed_axis, size_of
from weightscape.symmetry.degree_rules import NONE, PASS, Rule, product
from weightscape.symmetry.ledger import Equation, Ledger
from weightscape.symmetry.pointwise import joined, pointwise

Values = Sequence[Value]


def _dot(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    """Σ over contracted axes, place by place along batch axes."""
    (left_sum, right_sum), (left_batch, right_batch) = equation.params["dimension_numbers"]
    left, right = values
    batch = [_beside(ledger, values, i, j) for i, j in zip(left_batch, right_batch, strict=True)]
    for i, j in zip(left_sum, right_sum, strict=True):
        _contract(ledger, values, left.axes[i], right.axes[j])
    rest = [_free(left, {*left_sum, *left_batch}), _free(right, {*right_sum, *right_batch})]
    for value, other, own in zip(values, values[::-1], rest, strict=True):
        if other.of_inputs and not value.of_inputs:
            for factors in (*own, *batch):
                ledger.use(ledger.produced, factors)
    return [Value((*batch, *rest[0], *rest[1]), of_inputs=left.of_inputs or right.of_inputs)]


def _convolve(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    """Channels are contracted, positions stay. With feature groups both channel axes are products (group, channel)."""
    numbers, options = equation.params["dimension_numbers"], equation.params
    image, kernel = values
    if options["batch_group_count"] != 1:
        return lose(ledger, equation, values)
    for i in numbers.lhs_spec[2:]:
        ledger.fix(image.axes[i])
    for i in numbers.rhs_spec[2:]:
        ledger.fix(kernel.axes[i])
    channels, inner, outer = (
        image.axes[numbers.lhs_spec[1]],
        kernel.axes[numbers.rhs_spec[1]],
        kernel.axes[numbers.rhs_spec[0]],
    )
    num_groups = options["feature_group_count"]
    if num_groups > 1:
        channels, outer = _grouped(ledger, values, channels, outer, num_groups)
    _contract(ledger, values, channels, inner)
    if image.of_inputs and not kernel.of_inputs:
        ledger.use(ledger.produced, outer)
    axes = [fixed_axis(size) for size in equation.outvars[0].aval.shape]
    axes[numbers.out_spec[0]] = image.axes[numbers.lhs_spec[0]]
    axes[numbers.out_spec[1]] = outer
    return [Value(tuple(axes), of_inputs=image.of_inputs or kernel.of_inputs)]


def _reduction(scale: Rule, sign: Rule) -> Any:
    """The rule of an operation that gathers whole axes into one number, whatever the order of its terms."""

    def rule(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
        (value,) = values[:1]
        gone = set(equation.params["axes"])
        for i in gone:
            _consume(ledger, value.axes[i])
        return [pointwise(ledger, [value._replace(axes=_free(value, gone))], scale, sign)]

    return rule


def _position_of(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    """The place of the largest entry: the places must stay."""
    (value,), gone = values, set(equation.params["axes"])
    for i in gone:
        ledger.fix(value.axes[i])
    return [pointwise(ledger, [value._replace(axes=_free(value, gone))], NONE, NONE)]


def _cumulative(scale: Rule, sign: Rule) -> Any:
    """The rule of an operation that runs along one axis, whose places stay."""

    def rule(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
        return [_staying(ledger, values[0], [equation.params["axis"]], scale, sign)]

    return rule


def _sort(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    held = [_staying(ledger, value, [equation.params["dimension"]], NONE, NONE) for value in values]
    together = pointwise(ledger, held, NONE, NONE)
    return [together] * len(values)


def _pool(scale: Rule, sign: Rule) -> Any:
    """The rule of an operation on windows; axes with windows of one place pass, the others stay."""

    def rule(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
        options, shape = equation.params, equation.outvars[0].aval.shape
        unit = [1] * len(shape)
        sizes = zip(
            options["window_dimensions"],
            options["window_strides"],
            options.get("padding") or [(0, 0)] * len(shape),
            options.get("base_dilation") or unit,
            strict=True,
        )
        moving = [i for i, window in enumerate(sizes) if window != (1, 1, (0, 0), 1)]
        held = _staying(ledger, values[0], moving, scale, sign)
        axes = [fixed_axis(shape[i]) if i in moving else a for i, a in enumerate(held.axes)]
        return [held._replace(axes=tuple(axes))]

    return rule


def lose(ledger: Ledger, equation: Any, values: Values) -> list[Value]:
    """An operation that is not understood: everything that goes in or comes out stays."""
    ledger.lose(equation.primitive.name, values)
    of_inputs = any(value.of_inputs for value in values)
    shapes = [getattr(variable.aval, "shape", ()) for variable in equation.outvars]
    return [Value(tuple(map(fixed_axis, shape)), of_inputs=of_inputs) for shape in shapes]


def _beside(ledger: Ledger, values: Values, i: int, j: int) -> Axis:
    """Batch axes: places of both operands, multiplied."""
    rule = product(1.0, 1.0)
    rows = ledger.align([values[0].axes[i], values[1].axes[j]])
    return axis([joined(ledger, row, values, rule, rule) for row in rows])


def _contract(ledger: Ledger, values: Values, left: Axis, right: Axis) -> None:
    """Join what is multiplied and summed over."""
    rule = product(1.0, 1.0)
    for row in ledger.align([left, right]):
        summed = joined(ledger, row, values, rule, rule)
        _consume(ledger, (summed,))
    for value, other, factors in ((values[0], values[1], left), (values[1], values[0], right)):
        if other.of_inputs and not value.of_inputs:
            ledger.use(ledger.consumed, factors)


def _consume(ledger: Ledger, factors: Axis) -> None:
    """Units that are summed over keep their scale and sign."""
    for factor in factors:
        if isinstance(factor, Units):
            equation = Equation((1.0,), (factor.degrees,))
            ledger.scale.append(equation)
            ledger.sign.append(equation)


def _free(value: Value, gone: set[int]) -> tuple[Axis, ...]:
    return tuple(factors for i, factors in enumerate(value.axes) if i not in gone)


def _staying(ledger: Ledger, value: Value, which: Sequence[int], scale: Rule, sign: Rule) -> Value:
    axes = [ledger.fix(a) if i in which else a for i, a in enumerate(value.axes)]
    return pointwise(ledger, [value._replace(axes=tuple(axes))], scale, sign)


def _grouped(ledger: Ledger, values: Values, channels: Axis, outer: Axis, num_groups: int) -> tuple[Axis, Axis]:
    """The channels within a group, and the kernel's outputs with the groups of both joined."""
    split = lambda factors: ledger.reshape(Value((factors,)), (num_groups, size_of(factors) // num_groups)).axes
    (image_group, within), (kernel_group, made) = split(channels), split(outer)
    rule = product(1.0, 1.0)
    rows = ledger.align([image_group, kernel_group])
    group = [joined(ledger, row, values, rule, rule) for row in rows]
    return within, axis([*group, *made])


_LINEAR = (PASS, PASS)
_LARGEST = (PASS, NONE)

SUMS = {
    "dot_general": _dot,
    "conv_general_dilated": _convolve,
    "reduce_sum": _reduction(*_LINEAR),
    **{name: _reduction(*_LARGEST) for name in ("reduce_max", "reduce_min")},
    **{name: _reduction(NONE, NONE) for name in ("reduce_prod", "reduce_and", "reduce_or", "reduce_xor")},
    **dict.fromkeys(("argmax", "argmin"), _position_of),
    "cumsum": _cumulative(*_LINEAR),
    **{name: _cumulative(*_LARGEST) for name in ("cummax", "cummin")},
    **{name: _cumulative(NONE, NONE) for name in ("cumprod", "cumlogsumexp")},
    "sort": _sort,
    "reduce_window_sum": _pool(*_LINEAR),
    **{name: _pool(*_LARGEST) for name in ("reduce_window_max", "reduce_window_min")},
}
"""What to do with each operation that sums or gathers, by its name."""
