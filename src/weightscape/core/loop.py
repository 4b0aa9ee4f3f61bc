"""The driver of every iterative method: chains in parallel, steps in compiled chunks, progress in between.

A method gives a `step(key, state, index) -> (state, output)` for one chain. `drive` vectorises it over the
chains of each device, shards the chains over devices, and runs it in chunks of about a second; between chunks
it reports progress, looks at the clock and can be interrupted. The number of steps is a number, not a shape,
so changing it compiles nothing, and the bits of a run do not depend on where its chunks end.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Key

from weightscape.core.devices import CHAIN_AXIS, chain_mesh
from weightscape.core.progress import Progress
from weightscape.core.types import Tree

Step = Callable[[Any, Any, Any], tuple[Any, Any]]

_BUFFER_BYTES = 64 * 2**20
_MOST_OUTPUTS = 1024
_CHUNK_SECONDS = 1.0


class Plan(NamedTuple):
    """How long to go on: `num_outputs` outputs, one every `every` steps, for at most `seconds`.

    `first` is the index of the first step, so that a later phase or a resumed run never repeats an index.
    """

    num_outputs: int
    every: int = 1
    first: int = 0
    seconds: float = math.inf


class Chunk(NamedTuple):
    """A stretch of a run: the state after it, and its outputs with leading axes (chain, output)."""

    state: Tree
    outputs: Tree


def drive(
    step: Step,
    keys: Key[Array, " chain"],
    state: Tree,
    plan: Plan,
    *,
    label: str,
    progress: Progress,
    facts: Callable[[Tree], Mapping[str, float]] = lambda outputs: {},
) -> Iterator[Chunk]:
    """Yield a run chunk by chunk.

    - `step`: a pytree callable for one chain; numbers in it are leaves, so changing them compiles nothing.
      Step i of a chain gets the key `fold_in(chain key, i)` and the index i, which all chains share.
    - `keys`, `state`: one key and one state for each chain, on a leading axis.
    - `facts`: numbers to show beside the progress bar, from the newest outputs.
    """
    mesh = chain_mesh(len(keys))
    step, keys, state = _replicate(step, mesh), _shard(keys, mesh), _shard(state, mesh)
    capacity = _capacity(step, keys, state, plan.num_outputs)
    done, count, end = 0, min(8, capacity), time.monotonic() + plan.seconds
    progress.start(label, plan.num_outputs)
    try:
        while done < plan.num_outputs and (done == 0 or time.monotonic() < end):
            count = min(count, plan.num_outputs - done)
            began = time.monotonic()
            state, buffer = _run_chunk(
                step,
                keys,
                state,
                jnp.asarray(plan.first + done * plan.every),
                jnp.asarray(count),
                jnp.asarray(plan.every),
                capacity,
                mesh,
            )
            outputs = jax.tree.map(lambda leaf, count=count: np.asarray(leaf)[:, :count], buffer)
            done += count
            progress.advance(done, facts(outputs))
            yield Chunk(state, outputs)
            count = _next_count(count, time.monotonic() - began, capacity)
    finally:
        progress.finish()


def map_chains(function: Callable[..., Any], *chained: Tree) -> Tree:
    """`function` of each chain's slice of `chained`, compiled and sharded over devices like a run."""
    num_chains = len(jax.tree.leaves(chained)[0])
    return _map_chains(function, chained, chain_mesh(num_chains))


@eqx.filter_jit
def _run_chunk(step, keys, state, first, count, every, capacity: int, mesh: Mesh):
    def shard(step, keys, state):
        def steps(i, carry):
            def one(j, inner):
                index = first + i * every + j
                step_keys = jax.vmap(jax.random.fold_in, (0, None))(keys, index)
                return jax.vmap(step, (0, 0, None))(step_keys, inner[0], index)

            state, buffer = carry
            state, output = jax.lax.fori_loop(0, every, one, (state, empty))
            put = lambda into, new: jax.lax.dynamic_update_index_in_dim(into, new, i, axis=0)
            return state, jax.tree.map(put, buffer, output)

        shapes = jax.eval_shape(jax.vmap(step, (0, 0, None)), keys, state, first)[1]
        empty = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        buffer = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), shapes)
        state, buffer = jax.lax.fori_loop(0, count, steps, (state, buffer))
        return state, jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), buffer)

    return _over_chains(shard, mesh)(step, keys, state)


@eqx.filter_jit
def _map_chains(function, chained, mesh: Mesh):
    return _over_chains(lambda function, chained: jax.vmap(function)(*chained), mesh)(function, chained)


def _over_chains(function: Callable[..., Any], mesh: Mesh) -> Callable[..., Any]:
    """Shard all arguments but the first over the mesh's chain axis; the first is the same everywhere."""

    def call(shared, *chained):
        arrays, rest = eqx.partition(shared, eqx.is_array)
        local = lambda arrays, *chained: function(eqx.combine(arrays, rest), *chained)
        specs = (P(), *(P(CHAIN_AXIS) for _ in chained))
        sharded = jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(CHAIN_AXIS), check_vma=False)
        return sharded(arrays, *chained)

    return call


def _replicate(step: Step, mesh: Mesh) -> Step:
    """Put the step's arrays (the data among them) on every device once, not once a chunk."""
    arrays, rest = eqx.partition(step, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, NamedSharding(mesh, P())), rest)


def _shard(chained: Tree, mesh: Mesh) -> Tree:
    """Spread chains over devices, with settled types: a first chunk unlike the later ones would compile twice."""
    strong = lambda leaf: leaf if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf.astype(leaf.dtype)
    return jax.device_put(jax.tree.map(strong, chained), NamedSharding(mesh, P(CHAIN_AXIS)))


def _capacity(step: Step, keys: Key[Array, " chain"], state: Tree, num_outputs: int) -> int:
    """Outputs held by the compiled buffer: a power of two, so that most run lengths share one program."""
    one = eqx.filter_eval_shape(
        lambda step, keys, state: jax.vmap(step, (0, 0, None))(keys, state, jnp.asarray(0))[1], step, keys, state
    )
    output_bytes = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(one))
    most = max(1, min(_MOST_OUTPUTS, _BUFFER_BYTES // max(output_bytes, 1), num_outputs))
    return 2 ** math.ceil(math.log2(most))


def _next_count(count: int, seconds: float, capacity: int) -> int:
    """Outputs for the next chunk, so that it takes about a second."""
    growth = min(4.0, max(0.25, _CHUNK_SECONDS / max(seconds, 1e-6)))
    return max(1, min(capacity, round(count * growth)))
