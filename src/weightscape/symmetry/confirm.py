"""The numerical check of a symmetry: what structure proposes is kept only where the function does not change.

    max |f(x; g θ) − f(x; θ)| ≤ √ε max |f|      for random elements g, at weights θ of several sizes

in double precision where the program takes it, with ε the coarsest rounding inside the program. Sizes matter: where
weights are small, an activation that is cut off far out looks like one that is not.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr

from weightscape.core.checks import InputError
from weightscape.core.types import Tree
from weightscape.symmetry.assemble import leaf_factors_of, trimmed
from weightscape.symmetry.element import Element
from weightscape.symmetry.group import Group
from weightscape.symmetry.symmetry import Symmetry

_SIZES = (0.3, 1.0, 3.0, 10.0)
"""What the weights are multiplied by, one after another."""

_SPREAD = 0.7
"""Standard deviation of the logarithms of the scales that are tried."""


def confirmed(symmetry: Symmetry, function: Callable[[Tree, Any], Any], params: Tree, inputs: Any) -> Symmetry:
    """The symmetry without what changes `function(params, inputs)`. The generator is fixed: so is the answer."""
    precise = jax.default_matmul_precision("highest")  # accelerators round products of single precision
    with jax.enable_x64(_runs_wide(function, params, inputs)), precise:
        check = _Check(symmetry, function, params, inputs)
        everything = _random(symmetry, np.random.default_rng(1))
        if check.holds(everything):
            return symmetry
        groups = [_confirmed(check, symmetry, everything, g) for g in range(len(symmetry.groups))]
    kept = tuple(group for group in groups if group is not None)
    kept, leaves = trimmed(kept, leaf_factors_of(kept, symmetry.leaves))
    return dataclasses.replace(symmetry, groups=kept, leaves=leaves)


class _Check:
    """A function at weights of several sizes after an element, compiled once."""

    def __init__(self, symmetry: Symmetry, function: Callable, params: Tree, inputs: Any):
        generator = np.random.default_rng(0)
        inputs, params = (_valued(generator, arrays) for arrays in (inputs, params))
        moved = lambda weights, element, data: jax.tree.leaves(function(symmetry.apply(weights, element), data))
        self.compiled, self.inputs, self.identity = jax.jit(moved), inputs, _identity(symmetry)
        self.weights = [jax.tree.map(lambda leaf, c=size: _noisy(generator, leaf, c), params) for size in _SIZES]
        results = [self.compiled(weights, self.identity, inputs) for weights in self.weights]
        self.results = [[np.asarray(leaf) for leaf in result] for result in results]
        self.usable = [i for i, leaves in enumerate(self.results) if all(np.all(np.isfinite(leaf)) for leaf in leaves)]
        if not self.usable:
            raise InputError(
                "A network whose symmetry is discovered must have finite outputs, got none at weights of several sizes."
                " Pass inputs and parameters at which it is defined."
            )
        self.tolerance = float(np.sqrt(_rounding(jax.make_jaxpr(moved)(params, self.identity, inputs))))

    def holds(self, element: Element) -> bool:
        """Whether the element leaves the function unchanged."""
        return all(self._holds_at(i, element) for i in self.usable)

    def _holds_at(self, i: int, element: Element) -> bool:
        moved = [np.asarray(leaf) for leaf in self.compiled(self.weights[i], element, self.inputs)]
        pairs = [(before, after) for before, after in zip(self.results[i], moved, strict=True) if before.size]
        return all(np.max(np.abs(after - before)) <= self.tolerance * np.max(np.abs(before)) for before, after in pairs)


def _confirmed(check: _Check, symmetry: Symmetry, element: Element, g: int) -> Group | None:
    """One group with the kinds that hold; None where not even permutations do, or where no kind is left."""
    group, alone = symmetry.groups[g], lambda field, value: _replaced(check.identity, field, g, value)
    if not check.holds(alone("permutations", element.permutations[g])):
        return None
    row = lambda field, k: np.where(
        np.arange(len(getattr(element, field)[g]))[:, None] == k,
        getattr(element, field)[g],
        getattr(check.identity, field)[g],
    )
    scales = [k for k in range(group.num_scalings) if check.holds(alone("log_scales", row("log_scales", k)))]
    signs = [k for k in range(group.num_signs) if check.holds(alone("signs", row("signs", k)))]
    members = tuple(
        dataclasses.replace(
            member,
            scale_exponents=tuple(member.scale_exponents[k] for k in scales),
            sign_exponents=tuple(member.sign_exponents[k] for k in signs),
        )
        for member in group.members
    )
    left = dataclasses.replace(group, members=members)
    return left if left.kinds else None


def _identity(symmetry: Symmetry) -> Element:
    groups = symmetry.groups
    return Element(
        tuple(np.arange(group.size) for group in groups),
        tuple(np.ones((group.num_signs, group.size), int) for group in groups),
        tuple(np.zeros((group.num_scalings, group.size)) for group in groups),
    )


def _random(symmetry: Symmetry, generator: np.random.Generator) -> Element:
    """A random element as arrays of NumPy: nothing is compiled for it."""
    groups = symmetry.groups
    return Element(
        tuple(generator.permutation(group.size) for group in groups),
        tuple(_random_signs(generator, group) for group in groups),
        tuple(_SPREAD * generator.normal(size=(group.num_scalings, group.size)) for group in groups),
    )


def _random_signs(generator: np.random.Generator, group: Group) -> np.ndarray:
    """Random signs; the first unit always changes its own, or a group of one might not be tried at all."""
    signs = generator.choice([-1, 1], (group.num_signs, group.size))
    signs[:, 0] = -1
    return signs


def _replaced(element: Element, field: str, g: int, value: np.ndarray) -> Element:
    values = list(getattr(element, field))
    values[g] = value
    return dataclasses.replace(element, **{field: tuple(values)})


def _runs_wide(function: Callable, params: Tree, inputs: Any) -> bool:
    """Whether a function takes double precision. One that holds arrays of another type, as a state, may not."""
    with jax.enable_x64(True):
        wide = lambda leaf: jax.ShapeDtypeStruct(leaf.shape, jnp.float64 if _is_floating(leaf) else leaf.dtype)
        try:
            jax.eval_shape(function, *jax.tree.map(wide, (params, inputs)))
        except (TypeError, ValueError):
            return False
    return True


def _valued(generator: np.random.Generator, arrays: Any) -> Any:
    """Arrays of the widest type that is switched on; shapes become arrays of some values."""

    def value(leaf: Any) -> np.ndarray:
        if isinstance(leaf, jax.ShapeDtypeStruct):
            drawn = generator.normal(size=leaf.shape)
            return np.asarray(drawn, jnp.result_type(float)) if _is_floating(leaf) else np.zeros(leaf.shape, leaf.dtype)
        return np.asarray(leaf).astype(jnp.result_type(float)) if _is_floating(leaf) else np.asarray(leaf)

    return jax.tree.map(value, arrays)


def _is_floating(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.floating)


def _noisy(generator: np.random.Generator, leaf: np.ndarray, size: float) -> np.ndarray:
    """Weights near a leaf, with noise as large as they are, times `size`."""
    root_mean_square = np.sqrt(np.mean(np.square(leaf))) if leaf.size else 0.0
    noise = (root_mean_square or 0.1) * generator.normal(size=leaf.shape)
    return np.asarray(size * (leaf + noise), leaf.dtype)


def _rounding(program: ClosedJaxpr | Jaxpr) -> float:
    """The coarsest machine precision of any number in a program."""
    return max((float(jnp.finfo(dtype).eps) for dtype in _float_types(program)), default=2.0**-52)


def _float_types(program: ClosedJaxpr | Jaxpr) -> Iterator[Any]:
    inner = program.jaxpr if isinstance(program, ClosedJaxpr) else program
    for equation in inner.eqns:
        types = [getattr(variable.aval, "dtype", None) for variable in equation.outvars]
        yield from (dtype for dtype in types if dtype is not None and jnp.issubdtype(dtype, jnp.floating))
        for part in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_program):
            yield from _float_types(part) if _is_program(part) else ()


def _is_program(part: Any) -> bool:
    return isinstance(part, (ClosedJaxpr, Jaxpr))
