"""Linear assignment inside a compiled step.

    π = argmin_π Σ_i costs[i, π(i)]        over all permutations π

Row by row the compiled Hungarian algorithm takes n² tiny steps, in which many small problems go side by side: that is
how units are matched. An accelerator would wait through those of a large problem, and asks scipy on the host for it. A
CPU never does, since a callback may wait for the very threads that run the program.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from weightscape.geometry.assignment import assign

_SMALL = 64
"""Rows up to which an accelerator does not ask the host."""


def cheapest(costs: Float[Array, "row row"]) -> Int[Array, " row"]:
    """The column of each row in the permutation of least cost, exactly; vmap for many.

    Example:
    >>> cheapest(jnp.asarray([[0.0, -2.0], [-1.0, -2.5]])).tolist()
    [1, 0]
    """
    if len(costs) <= _SMALL:
        return compiled(costs)
    return jax.lax.platform_dependent(costs, cpu=compiled, default=called_back)


def compiled(costs: Float[Array, "row row"]) -> Int[Array, " row"]:
    """The same by the Hungarian algorithm, on the device."""
    rows, columns = optax.assignment.hungarian_algorithm(costs)
    return jnp.zeros(len(costs), jnp.int32).at[rows].set(columns.astype(jnp.int32))


def called_back(costs: Float[Array, "row row"]) -> Int[Array, " row"]:
    """The same by scipy, on the host."""
    result = jax.ShapeDtypeStruct(costs.shape[:-1], jnp.int32)
    return jax.pure_callback(_on_host, result, costs, vmap_method="broadcast_all")


def _on_host(costs: Float[Array, "*batch row row"]) -> Int[np.ndarray, "*batch row"]:
    numbers = np.asarray(costs)
    return assign(-numbers.reshape(-1, *numbers.shape[-2:])).astype(np.int32).reshape(numbers.shape[:-1])
