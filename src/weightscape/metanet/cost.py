"""What a metanet costs: parameters, and operations and memory for one network."""

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax

from weightscape.core import tree
from weightscape.metanet.fixed import split_trained


@dataclasses.dataclass(frozen=True)
class Cost:
    """Sizes of a compiled module.

    - `num_parameters`: trained numbers.  `num_operations`: floating-point operations of a call, as compiled.
    - `num_bytes`: memory of a call, arguments and results included, parameters apart.
    """

    num_parameters: int
    num_operations: float
    num_bytes: float

    def __str__(self) -> str:
        operations, size = self.num_operations / 1e6, self.num_bytes / 1e6
        return f"{self.num_parameters:,} parameters; a call takes {operations:,.2f} MFLOP and {size:,.2f} MB"


def cost(module: eqx.Module, *arguments: Any) -> Cost:
    """The cost of `module(*arguments)`; it is compiled, not run.

    Example:
    >>> import jax.numpy as jnp
    >>> from weightscape.metanet.linear import Linear
    >>> print(cost(Linear.of(jax.random.key(0), 3, 4), jnp.ones((2, 3))).num_parameters)
    16
    """
    weights, _ = split_trained(module)
    numbers, structure = eqx.partition(module, eqx.is_array)
    call = lambda numbers, arguments: eqx.combine(numbers, structure)(*arguments)
    compiled = jax.jit(call).lower(numbers, arguments).compile()
    operations = (compiled.cost_analysis() or {}).get("flops", math.nan)
    return Cost(tree.size(weights), float(operations), _memory(compiled.memory_analysis()) - tree.num_bytes(weights))


def _memory(analysis: Any | None) -> float:
    """Bytes of a compiled call; not a number where the backend does not say."""
    if analysis is None:
        return math.nan
    return float(analysis.temp_size_in_bytes + analysis.argument_size_in_bytes + analysis.output_size_in_bytes)
