"""A task of a field over many networks as one compiled program, with its memory and operations."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

TASKS = ("forward", "gradient")


class Program(NamedTuple):
    """How to do a task once and wait for it, and what it takes for one network."""

    call: Callable[[], Any]
    num_bytes: float
    num_operations: float


def compiled(field: Any, task: str, networks: Any) -> Program:
    """The task of a field of JAX, compiled for these networks: leaves have one leading axis."""
    arrays, rest = eqx.partition(field, eqx.is_array)
    num_networks = len(jax.tree.leaves(networks)[0])

    def forward(arrays: Any, times: jax.Array, networks: Any) -> Any:
        return jax.vmap(lambda time, params: eqx.combine(arrays, rest)(time, params))(times, networks)

    def error(numbers: Any, fixed: Any, times: jax.Array, networks: Any) -> jax.Array:
        made = forward(eqx.combine(numbers, fixed), times, networks)
        pairs = zip(jax.tree.leaves(made), jax.tree.leaves(networks), strict=True)
        return sum((jnp.sum((one - other) ** 2) for one, other in pairs), jnp.zeros(()))

    def gradient(arrays: Any, times: jax.Array, networks: Any) -> Any:
        return jax.value_and_grad(error)(*eqx.partition(arrays, eqx.is_inexact_array), times, networks)

    given = arrays, times_of(num_networks), networks
    function = {"forward": forward, "gradient": gradient}[task]
    program = jax.jit(function).lower(*given).compile()
    memory = program.memory_analysis()
    # The numbers of the field and their gradient are there once, however many networks there are.
    shared = arrays if task == "forward" else (arrays, eqx.filter(arrays, eqx.is_inexact_array))
    all_bytes = memory.temp_size_in_bytes + memory.argument_size_in_bytes + memory.output_size_in_bytes
    num_bytes = all_bytes - sum(leaf.nbytes for leaf in jax.tree.leaves(shared))
    operations = num_operations(jax.make_jaxpr(function)(*given).jaxpr)
    call = lambda: jax.block_until_ready(program(*given))
    return Program(call, num_bytes / num_networks, operations / num_networks)


def times_of(num_networks: int) -> jax.Array:
    return jnp.linspace(0.0, 1.0, num_networks)


def num_operations(jaxpr: Any) -> float:
    """Additions and multiplications of the products as written, bodies of scans as often as they run.

    The compiler's own count takes the body of a loop once and differs between devices.
    """
    total = 0.0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            shape = equation.invars[0].aval.shape
            total += 2.0 * equation.outvars[0].aval.size * math.prod(shape[i] for i in contracted)
        parts = [part for part in jax.tree.leaves(list(equation.params.values())) if hasattr(part, "eqns")]
        total += equation.params.get("length", 1) * sum(num_operations(part) for part in parts)
    return total
