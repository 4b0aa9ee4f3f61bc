"""The driver of every iterative method: chains in parallel, steps in compiled chunks, progress in between.

A method gives a `Walk`: one step of one chain, and what is shown of it. `drive` vectorises it over the chains of each
device, shards the chains over devices, and runs it in chunks of about a second; between chunks it reports progress,
looks at the clock and can be interrupted. The number of steps is a number, not a shape, so changing it compiles
nothing, and the bits of a run do not depend on where its chunks end.
"""

import abc
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
from weightscape.core.footprint import largest_bytes
from weightscape.core.progress import Progress
from weightscape.core.tree import num_bytes
from weightscape.core.types import Tree

_BUFFER_BYTES = 64 * 2**20
_MOST_OUTPUTS = 1024
_CHUNK_SECONDS = 1.0
_MOST_AT_ONCE = 1024
_LARGEST_BYTES = 2**30
"""Chains whose outputs are computed side by side on a device, and what the largest array on the way may take."""


class Walk(eqx.Module):
    """What the driver repeats. Numbers in it are leaves, so changing them compiles nothing."""

    @abc.abstractmethod
    def step(self, key: Any, state: Any, index: Any) -> tuple[Any, Any]:
        """The next state of one chain, and notes on the step. Step `index` gets `fold_in(chain key, index)`."""

    @abc.abstractmethod
    def observe(self, state: Any, notes: Any) -> Any:
        """An output: what is kept of a state and of the notes since the last output.

        Of those notes a number is the last step's; a truth value says whether any step's was true.
        """

    @abc.abstractmethod
    def rows(self) -> tuple[Array, ...]:
        """Arrays with a row for each data point, which may be split over devices."""


class Plan(NamedTuple):
    """How long to go on: up to `num_outputs` outputs, of which `done` are there, for at most `seconds`.

    An output follows after every `every` steps; a tuple of such gaps is gone through in turn. `first` is the index of
    the first step, so that a later phase never repeats an index. The data are split over `num_shards` devices.
    """

    num_outputs: int
    every: int | tuple[int, ...] = 1
    first: int = 0
    seconds: float = math.inf
    done: int = 0
    num_shards: int = 1


class Chunk(NamedTuple):
    """A stretch of a run: the state after it, its outputs with leading axes (chain, output), all outputs so far."""

    state: Tree
    outputs: Tree
    done: int


def drive(
    walk: Walk,
    keys: Key[Array, " chain"],
    state: Tree,
    plan: Plan,
    *,
    label: str,
    progress: Progress,
    facts: Callable[[Tree], Mapping[str, float]] = lambda outputs: {},
) -> Iterator[Chunk]:
    """Yield a run chunk by chunk.

    - `keys`, `state`: one key and one state for each chain, on a leading axis.
    - `facts`: numbers to show beside the progress bar, from the newest outputs.
    """
    mesh = chain_mesh(len(keys), plan.num_shards)
    walk, keys, state = _replicate(walk, mesh), _shard(keys, mesh), _shard(state, mesh)
    capacity = _capacity(walk, keys, state, plan.num_outputs)
    gaps = jnp.atleast_1d(jnp.asarray(plan.every))
    done, count, end = plan.done, min(8, capacity), time.monotonic() + plan.seconds
    progress.start(label, plan.num_outputs)
    try:
        while done < plan.num_outputs and (done == plan.done or time.monotonic() < end):
            count = min(count, plan.num_outputs - done)
            began = time.monotonic()
            stretch = _Stretch(jnp.asarray(plan.first), jnp.asarray(done), jnp.asarray(count), gaps)
            state, buffer = _run_chunk(walk, keys, state, stretch, capacity, mesh)
            outputs = jax.tree.map(lambda leaf, count=count: np.asarray(leaf)[:, :count], buffer)
            done += count
            progress.advance(done, facts(outputs))
            yield Chunk(state, outputs, done)
            count = _next_count(count, time.monotonic() - began, capacity)
    finally:
        progress.finish()


def map_chains(function: Callable[..., Any], *chained: Tree) -> Tree:
    """`function` of each chain's slice of `chained`, compiled and sharded over devices like a run."""
    mesh = chain_mesh(len(jax.tree.leaves(chained)[0]))
    return _map_chains(function, _shard(chained, mesh), mesh)


class _Stretch(NamedTuple):
    """Outputs `done` to `done + num` of a run whose first step has index `first`; `gaps` steps before each."""

    first: Array
    done: Array
    num: Array
    gaps: Array

    def steps_before(self, i: Array) -> tuple[Array, Array]:
        """The index of the first step towards output `done + i`, and how many steps there are."""
        turn, place = (self.done + i) // len(self.gaps), (self.done + i) % len(self.gaps)
        earlier = jnp.cumsum(self.gaps) - self.gaps
        return self.first + turn * jnp.sum(self.gaps) + earlier[place], self.gaps[place]


@eqx.filter_jit
def _run_chunk(walk, keys, state, stretch: _Stretch, capacity: int, mesh: Mesh):
    def shard(walk, keys, state):
        def steps(i, carry):
            def one(j, inner):
                state, notes = inner
                step_keys = jax.vmap(jax.random.fold_in, (0, None))(keys, index + j)
                state, new = _of_each(lambda key, state: walk.step(key, state, index + j), step_keys, state)
                return state, jax.tree.map(_newer, notes, new)

            state, buffer = carry
            index, gap = stretch.steps_before(i)
            state, notes = jax.lax.fori_loop(0, gap, one, (state, _zeros(notes_like)))
            put = lambda into, new: jax.lax.dynamic_update_index_in_dim(into, new, i, axis=0)
            return state, jax.tree.map(put, buffer, _a_few_at_a_time(walk.observe, state, notes))

        notes_like, output_like = _shapes(walk, keys, state)
        buffer = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), output_like)
        state, buffer = jax.lax.fori_loop(0, stretch.num, steps, (state, buffer))
        return state, jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), buffer)

    return _over_chains(shard, mesh)(walk, keys, state)


def _shapes(walk: Walk, keys: Key[Array, " chain"], state: Tree) -> tuple[Tree, Tree]:
    """Shapes of the notes of a step, and of an output, of all chains."""

    def once(keys, state):
        state, notes = _of_each(lambda key, state: walk.step(key, state, jnp.asarray(0)), keys, state)
        return notes, _of_each(walk.observe, state, notes)

    return jax.eval_shape(once, keys, state)


def _of_each(function: Callable[..., Any], *chained: Tree) -> Tree:
    """`function` of each chain's slice. One chain is not vectorised: its products would be those of batches of one."""
    if len(jax.tree.leaves(chained)[0]) > 1:
        return jax.vmap(function)(*chained)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], function(*jax.tree.map(lambda leaf: leaf[0], chained)))


def _a_few_at_a_time(function: Callable[..., Any], *chained: Tree) -> Tree:
    """`function` of each chain's slice, in bounded memory: it may look at all data, and there may be 10,000 chains."""
    count = len(jax.tree.leaves(chained)[0])
    at_once = _num_fitting(function, count, chained)
    if count <= at_once:
        return _of_each(function, *chained)
    return jax.lax.map(lambda each: function(*each), chained, batch_size=at_once)


def _num_fitting(function: Callable[..., Any], count: int, chained: tuple[Tree, ...]) -> int:
    """How many chains to look at side by side; tracing `function` once more is saved where its data are small."""
    held = num_bytes(eqx.filter((function, chained), eqx.is_array))
    if count * held <= _LARGEST_BYTES:
        return _MOST_AT_ONCE
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), chained)
    return min(_MOST_AT_ONCE, max(1, _LARGEST_BYTES // max(1, largest_bytes(function, *one))))


def _zeros(like: Tree) -> Tree:
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like)


def _newer(old: Array, new: Array) -> Array:
    return old | new if new.dtype == bool else new


@eqx.filter_jit
def _map_chains(function, chained, mesh: Mesh):
    return _over_chains(lambda function, chained: _a_few_at_a_time(function, *chained), mesh)(function, chained)


def _over_chains(function: Callable[..., Any], mesh: Mesh) -> Callable[..., Any]:
    """Shard all arguments but the first over the mesh's chain axis; the first is the same everywhere."""

    def call(shared, *chained):
        arrays, rest = eqx.partition(shared, eqx.is_array)
        local = lambda arrays, *chained: function(eqx.combine(arrays, rest), *chained)
        specs = (P(), *(P(CHAIN_AXIS) for _ in chained))
        # A data axis is left to the compiler, which splits the sums over points and joins them again.
        sharded = jax.shard_map(
            local, mesh=mesh, in_specs=specs, out_specs=P(CHAIN_AXIS), axis_names={CHAIN_AXIS}, check_vma=False
        )
        return sharded(arrays, *chained)

    return call


def _replicate(walk: Walk, mesh: Mesh) -> Walk:
    """Put the walk's arrays on every device once, not once a chunk; split its rows where there is a data axis."""
    whole, split = NamedSharding(mesh, P()), NamedSharding(mesh, P(mesh.axis_names[1:2]))
    rows = {id(leaf) for leaf in walk.rows()}
    arrays, rest = eqx.partition(walk, eqx.is_array)
    placed = jax.tree.map(lambda leaf: jax.device_put(leaf, split if id(leaf) in rows else whole), arrays)
    return eqx.combine(placed, rest)


def _shard(chained: Tree, mesh: Mesh) -> Tree:
    """Spread chains over devices, with settled types: a first chunk unlike the later ones would compile twice."""
    strong = lambda leaf: leaf if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf.astype(leaf.dtype)
    return jax.device_put(jax.tree.map(strong, chained), NamedSharding(mesh, P(CHAIN_AXIS)))


def _capacity(walk: Walk, keys: Key[Array, " chain"], state: Tree, num_outputs: int) -> int:
    """Outputs held by the compiled buffer: a power of two, so that most run lengths share one program."""
    one = eqx.filter_eval_shape(_shapes, walk, keys, state)[1]
    output_bytes = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(one))
    most = max(1, min(_MOST_OUTPUTS, _BUFFER_BYTES // max(output_bytes, 1), num_outputs))
    return 2 ** math.ceil(math.log2(most))


def _next_count(count: int, seconds: float, capacity: int) -> int:
    """Outputs for the next chunk, so that it takes about a second."""
    growth = min(4.0, max(0.25, _CHUNK_SECONDS / max(seconds, 1e-6)))
    return max(1, min(capacity, round(count * growth)))
