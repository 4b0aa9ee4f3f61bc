"""The tracer: it follows the units of every leaf through the program of a function.

Calls, loops and branches are entered. An operation without a rule makes everything that meets it stay: it costs
symmetry, never correctness.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from weightscape.core import tree
from weightscape.core.types import Tree
from weightscape.symmetry.axes import Units, Value, constant, fixed_axis
from weightscape.symmetry.cuts import CUTS
from weightscape.symmetry.degree_rules import NONE, SUM
from weightscape.symmetry.ledger import Ledger, Refine
from weightscape.symmetry.moves import MOVES
from weightscape.symmetry.pointwise import POINTWISE, pointwise
from weightscape.symmetry.sums import SUMS, lose

Factorisation = dict[str, list[list[int]]]
"""For each leaf and each of its axes, the sizes of the factors."""

_MOST_ROUNDS = 8
"""Carries of a loop settle after two or three rounds; more than this is given up."""


def follow(function: Callable[[Tree, Any], Any], params: Tree, inputs: Any) -> tuple[Ledger, Factorisation]:
    """Notes on all units of `params` in `function(params, inputs)`, and how the axes of its leaves factor."""
    closed = jax.make_jaxpr(function)(params, inputs)
    shapes = {path: tuple(leaf.shape) for path, leaf in tree.named_leaves(params).items()}
    factorisation = {path: [[size] for size in shape] for path, shape in shapes.items()}
    while True:
        try:
            return _follow(closed, shapes, factorisation), factorisation
        except Refine as finer:
            _refine(factorisation[finer.path], finer.factor, finer.inner)


def _follow(closed: ClosedJaxpr, shapes: Mapping[str, tuple[int, ...]], factorisation: Factorisation) -> Ledger:
    ledger = Ledger()
    leaves = [ledger.leaf(path, shape, dict(enumerate(factorisation[path]))) for path, shape in shapes.items()]
    rest = closed.jaxpr.invars[len(leaves) :]
    inputs = [Value(tuple(map(fixed_axis, variable.aval.shape)), of_inputs=True) for variable in rest]
    for result in walk(ledger, closed, [*leaves, *inputs]):
        ledger.fix_all(result)
    return ledger


def _refine(axes: list[list[int]], factor: int, inner: int) -> None:
    """Split one factor of a leaf; factors are counted over all axes."""
    places = [(i, j) for i, sizes in enumerate(axes) for j, size in enumerate(sizes) if size > 0]
    i, j = places[factor]
    axes[i][j : j + 1] = [axes[i][j] // inner, inner]


def walk(ledger: Ledger, program: ClosedJaxpr | Jaxpr, values: Sequence[Value]) -> list[Value]:
    """The results of a program whose inputs are `values`."""
    closed = program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program, ())
    known = dict(zip(closed.jaxpr.constvars, map(constant, closed.consts), strict=True))
    known.update(zip(closed.jaxpr.invars, values, strict=True))
    read = lambda variable: constant(variable.val) if isinstance(variable, Literal) else known[variable]
    for equation in _needed(closed.jaxpr):
        rule = RULES.get(equation.primitive.name, lose)
        made = rule(ledger, equation, [read(variable) for variable in equation.invars])
        known.update(zip(equation.outvars, made, strict=True))
    return [read(variable) for variable in closed.jaxpr.outvars]


def _needed(program: Jaxpr) -> list[JaxprEqn]:
    """The equations that the results depend on: what is never used must cost no symmetry."""
    needed = {variable for variable in program.outvars if not isinstance(variable, Literal)}
    kept = []
    for equation in reversed(program.eqns):
        if not needed.isdisjoint(equation.outvars):
            needed.update(variable for variable in equation.invars if not isinstance(variable, Literal))
            kept.append(equation)
    return kept[::-1]


def _call(name: str) -> Any:
    """The rule of a call whose program is kept under `name`."""
    return lambda ledger, equation, values: walk(ledger, equation.params[name], values)


def _custom(ledger: Ledger, equation: Any, values: Sequence[Value]) -> list[Value]:
    """A function with its own derivative; versions of JAX differ in where they keep it."""
    program = next((equation.params[name] for name in ("call_jaxpr", "fun_jaxpr") if name in equation.params), None)
    return lose(ledger, equation, values) if program is None else walk(ledger, program, values)


def _scan(ledger: Ledger, equation: Any, values: Sequence[Value]) -> list[Value]:
    options, num_carry, num_rows = equation.params, *_scanned(equation)
    last = len(values) - num_rows
    consts, carry, rows = values[: last - num_carry], list(values[last - num_carry : last]), values[last:]
    for value in rows:
        ledger.fix(value.axes[0])
    inner = [value._replace(axes=value.axes[1:]) for value in rows]
    run = lambda notes, carried: walk(notes, options["jaxpr"], [*consts, *carried, *inner])
    made = _until_settled(ledger, carry, run)
    if made is None:
        return lose(ledger, equation, values)
    along = fixed_axis(options["length"])
    stacked = [value._replace(axes=(along, *value.axes), is_zero=False) for value in made[num_carry:]]
    return [*made[:num_carry], *stacked]


def _scanned(equation: Any) -> tuple[int, int]:
    """How many variables a scan carries, and how many it goes through row by row: these lose an axis inside.

    Read off shapes, since versions of JAX differ in where they note it.
    """
    body = equation.params["jaxpr"]
    inner = body.jaxpr if isinstance(body, ClosedJaxpr) else body
    losing = lambda outside, inside: sum(
        len(a.aval.shape) > len(b.aval.shape) for a, b in zip(outside, inside, strict=True)
    )
    return len(equation.outvars) - losing(equation.outvars, inner.outvars), losing(equation.invars, inner.invars)


def _while(ledger: Ledger, equation: Any, values: Sequence[Value]) -> list[Value]:
    options = equation.params
    num_test, num_body = options["cond_nconsts"], options["body_nconsts"]
    test, body = values[:num_test], values[num_test : num_test + num_body]
    run = lambda notes, carried: walk(notes, options["body_jaxpr"], [*body, *carried])
    made = _until_settled(ledger, list(values[num_test + num_body :]), run)
    if made is None:
        return lose(ledger, equation, values)
    for result in walk(ledger, options["cond_jaxpr"], [*test, *made]):
        pointwise(ledger, [result], NONE, NONE)
    return made


def _cond(ledger: Ledger, equation: Any, values: Sequence[Value]) -> list[Value]:
    which, *operands = values
    pointwise(ledger, [which], NONE, NONE)
    branches = [walk(ledger, branch, operands) for branch in equation.params["branches"]]
    of_inputs = which.of_inputs
    joined = [pointwise(ledger, results, SUM, SUM) for results in zip(*branches, strict=True)]
    return [value._replace(of_inputs=value.of_inputs or of_inputs) for value in joined]


def _until_settled(ledger: Ledger, carry: list[Value], run: Callable) -> list[Value] | None:
    """The results of a loop's body for carries that hold before and after it; None where none are found."""
    held = _settled(ledger, carry, run)
    if held is None:
        return None
    made = run(ledger, held)
    for start, kept, after in zip(carry, held, made[: len(carry)], strict=True):
        pointwise(ledger, [kept, start], SUM, SUM)
        pointwise(ledger, [kept, after], SUM, SUM)
    return [*held, *made[len(carry) :]]


def _settled(ledger: Ledger, carry: list[Value], run: Callable) -> list[Value] | None:
    """Carries with the units that a loop puts in them, found on a copy of the notes, with degrees of their own.

    A state that starts at zero has no units before the first round, and what is noted then would be too strict.
    """
    notes = ledger.copy()
    for _ in range(_MOST_ROUNDS):
        made = run(notes, carry)[: len(carry)]
        merged = [pointwise(notes, pair, SUM, SUM) for pair in zip(carry, made, strict=True)]
        if all(_alike(old, new) for old, new in zip(carry, merged, strict=True)):
            return [_renewed(ledger, value) for value in merged]
        carry = merged
    return None


def _renewed(ledger: Ledger, value: Value) -> Value:
    fresh = lambda factor: Units(factor.ids, ledger.degrees_of(factor.ids)) if isinstance(factor, Units) else factor
    return value._replace(axes=tuple(tuple(map(fresh, factors)) for factors in value.axes), is_zero=False)


def _alike(left: Value, right: Value) -> bool:
    """Whether two variables have the same units in the same places."""
    kind = lambda value: [[f.ids.tolist() if isinstance(f, Units) else f for f in factors] for factors in value.axes]
    return kind(left) == kind(right) and left.of_inputs == right.of_inputs


RULES = {
    **POINTWISE,
    **MOVES,
    **CUTS,
    **SUMS,
    "jit": _call("jaxpr"),
    "pjit": _call("jaxpr"),
    "closed_call": _call("call_jaxpr"),
    "core_call": _call("call_jaxpr"),
    "checkpoint": _call("jaxpr"),
    "remat2": _call("jaxpr"),
    "custom_jvp_call": _custom,
    "custom_vjp_call": _custom,
    "custom_vjp_call_jaxpr": _custom,
    "scan": _scan,
    "while": _while,
    "cond": _cond,
}
"""What to do with each operation, by its name. An operation that is not here loses the symmetry of what it meets."""
