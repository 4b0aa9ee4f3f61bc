"""The program of a network: what `apply` does to shapes, as one flat list of steps.

    variable_1, … = primitive(variable_i, …),    step by step, from the parameters and x to the outputs

Variables are numbered. Calls that only wrap a program (`jit`, `checkpoint`) are opened where a parameter goes in, with
fresh numbers each time; all others, and so every function with a derivative of its own, stay one step. Steps that the
outputs do not need are left out.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from weightscape.core import tree
from weightscape.core.checks import require
from weightscape.core.types import Tree
from weightscape.networks.traced_moves import MOVES

# What a call that only wraps a program keeps it under. Versions of JAX differ in the name of `jax.checkpoint`.
_WRAPPERS = {"jit": "jaxpr", "closed_call": "call_jaxpr", "checkpoint": "jaxpr", "remat2": "jaxpr"}


class Step(NamedTuple):
    """One operation: an equation of the trace with its variables by number."""

    equation: JaxprEqn
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.equation.primitive.name

    def run(self, *values: Any) -> list[Any]:
        """The values of `outputs` where `inputs` have these values."""
        primitive = self.equation.primitive
        with self.equation.ctx.manager:
            made = primitive.bind(*values, **primitive.get_bind_params(self.equation.params))
        return list(made) if primitive.multiple_results else [made]


class Program(NamedTuple):
    """Steps from parameters and inputs to outputs.

    - `types`: shape and type of each variable.  `constants`: values of those that depend on nothing.
    - `parameters`: variables of the leaves, by path.  `x`, `result`: variables of the inputs and of the outputs.
    """

    steps: tuple[Step, ...]
    types: tuple[Any, ...]
    constants: Mapping[int, Any]
    parameters: Mapping[str, int]
    x: int
    result: int

    @property
    def wiring(self) -> tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]:
        """What is done to which variables, without any shapes."""
        return tuple((step.name, step.inputs, step.outputs) for step in self.steps)


def trace(apply: Callable[[Tree, Any], Any], params: Tree, x: Any) -> Program:
    """The program of `apply` for arrays of these shapes; nothing is computed."""
    closed = jax.make_jaxpr(apply)(params, x)
    names = list(tree.named_leaves(params))
    flat = _Flattener()
    parameters = [flat.variable(variable.aval) for variable in closed.jaxpr.invars[: len(names)]]
    inputs = [flat.variable(variable.aval) for variable in closed.jaxpr.invars[len(names) :]]
    flat.bare.update(parameters)
    results = flat.inline(closed, [*parameters, *inputs])
    require(len(results) == 1, "A network must return one array", f"{len(results)}", "Stack what it returns.")
    by_path = dict(zip(names, parameters, strict=True))
    steps = _needed(flat.steps, results[0])
    return Program(steps, tuple(flat.types), flat.constants, by_path, inputs[0], results[0])


@dataclasses.dataclass
class _Flattener:
    """The flat program while it is written.

    - `bare`: variables that are parameters, with at most their axes moved.
    """

    steps: list[Step] = dataclasses.field(default_factory=list)
    types: list[Any] = dataclasses.field(default_factory=list)
    constants: dict[int, Any] = dataclasses.field(default_factory=dict)
    bare: set[int] = dataclasses.field(default_factory=set)

    def variable(self, kind: Any) -> int:
        self.types.append(kind)
        return len(self.types) - 1

    def constant(self, kind: Any, value: Any) -> int:
        number = self.variable(kind)
        self.constants[number] = value
        return number

    def inline(self, closed: ClosedJaxpr, inputs: list[int]) -> list[int]:
        """Write the steps of a program whose inputs are these variables; its outputs."""
        inner = closed.jaxpr
        consts = [self.constant(v.aval, value) for v, value in zip(inner.constvars, closed.consts, strict=True)]
        numbers = dict(zip([*inner.constvars, *inner.invars], [*consts, *inputs], strict=True))
        read = lambda v: self.constant(v.aval, v.val) if isinstance(v, Literal) else numbers[v]
        for equation in inner.eqns:
            made = self.write(equation, [read(v) for v in equation.invars])
            numbers.update(zip(equation.outvars, made, strict=True))
        return [read(v) for v in inner.outvars]

    def write(self, equation: JaxprEqn, inputs: list[int]) -> list[int]:
        """Write one equation, or what it wraps; its outputs."""
        name, enters = equation.primitive.name, not self.bare.isdisjoint(inputs)
        if enters and name in _WRAPPERS:
            return self.inline(_closed(equation.params[_WRAPPERS[name]]), inputs)
        outputs = [self.variable(v.aval) for v in equation.outvars]
        self.steps.append(Step(equation, tuple(inputs), tuple(outputs)))
        self.bare.update(outputs if enters and name in MOVES else ())
        return outputs


def _closed(program: ClosedJaxpr | Jaxpr) -> ClosedJaxpr:
    return program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program, ())


def _needed(steps: list[Step], result: int) -> tuple[Step, ...]:
    """The steps that the result depends on, or that do something else besides."""
    needed, kept = {result}, []
    for step in reversed(steps):
        if step.equation.effects or not needed.isdisjoint(step.outputs):
            needed.update(step.inputs)
            kept.append(step)
    return tuple(reversed(kept))
