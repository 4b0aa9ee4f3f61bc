"""How much memory a function takes: the largest array that its traced program makes on the way.

What is computed for many chains at once takes as much for each of them; a network on all rows of a data set makes
arrays of rows × units, which the sizes of its arguments do not tell.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import Jaxpr, jaxprs_in_params

from weightscape.core.tree import num_bytes
from weightscape.core.types import Tree


def largest_bytes(function: Callable[..., Any], *arguments: Tree) -> int:
    """The size of the largest array; `arguments` are arrays, or shapes of some. Nothing is computed."""
    return _largest(jax.make_jaxpr(function)(*arguments).jaxpr)


def _largest(program: Jaxpr) -> int:
    made = [num_bytes(variable.aval) for equation in program.eqns for variable in equation.outvars]
    inside = [_largest(part) for equation in program.eqns for part in jaxprs_in_params(equation.params)]
    return max([*made, *inside], default=0)
