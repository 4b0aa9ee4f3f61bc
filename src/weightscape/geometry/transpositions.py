"""How far a permutation is from the identity: the least number of swaps that make it.

    NoT(π) = n − (number of cycles of π)

A cycle of length c takes c − 1 swaps. The distance of two networks up to symmetry is a pair: ‖W0 − P W1‖² and NoT(P).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, Int

from weightscape.core.checks import require, require_count
from weightscape.core.keys import require_key
from weightscape.core.types import PRNGKey
from weightscape.symmetry import Element


def transpositions(permutation: ArrayLike | list | tuple | Element) -> int | Int[Array, "..."]:
    """The number of transpositions: an int for one permutation, an array for many or under a transformation.

    - `permutation`: units on the last axis, any leading axes; or an Element, whose groups are summed.

    Example:
    >>> transpositions([1, 2, 0, 3])
    2
    """
    if isinstance(permutation, Element):
        counts = [_count(jnp.asarray(each)) for each in permutation.permutations]
        number = sum(counts, start=jnp.zeros((), int))
    else:
        number = _count(jnp.asarray(permutation))
    return number if number.ndim or isinstance(number, Tracer) else int(number)


def with_transpositions(key: PRNGKey, size: int, number: int) -> Int[Array, " {size}"]:
    """A permutation of `size` units with `number` transpositions, uniform among all of those.

    A permutation of i units with k cycles comes from one of i − 1 units: the last unit is a cycle of its own, or it
    follows one of the others. There are c(i, k) = c(i−1, k−1) + (i−1) c(i−1, k), Stirling's numbers of the first kind,
    and each step is drawn with its share of them.

    - `number`: 0 for the identity, up to size − 1 for one long cycle.
    """
    require_key(key, "with_transpositions")
    require_count("`size` of with_transpositions", size)
    remedy = f"Pass a whole number from 0 to {size - 1}."
    require(0 <= number < size, f"`number` of with_transpositions for {size} units", number, remedy)
    return _draw(key, jnp.asarray(_own_cycle_chances(size, size - number), jnp.result_type(float)))


def _count(permutation: Int[Array, "... unit"]) -> Int[Array, "..."]:
    _require_permutation(permutation)
    size = permutation.shape[-1]
    units = jnp.broadcast_to(jnp.arange(size), permutation.shape)
    # The least unit of each cycle, by steps of doubling length: `least` knows 2^k steps ahead, `ahead` is π^(2^k).
    least, ahead = units, permutation
    for _ in range(max(size - 1, 0).bit_length()):
        least = jnp.minimum(least, jnp.take_along_axis(least, ahead, axis=-1))
        ahead = jnp.take_along_axis(ahead, ahead, axis=-1)
    return size - jnp.sum(least == units, axis=-1)


def _require_permutation(permutation: Int[Array, "... unit"]) -> None:
    if not isinstance(permutation, Tracer):
        rows = np.asarray(permutation)
        whole = bool(np.all(np.sort(rows, axis=-1) == np.arange(rows.shape[-1])))
        remedy = "Pass each of 0, …, n − 1 once along the last axis."
        require(whole, "`permutation` of transpositions must be a permutation", rows.tolist(), remedy)


def _own_cycle_chances(size: int, num_cycles: int) -> Float[np.ndarray, "unit cycle"]:
    """[i, k]: the chance that unit i is a cycle of its own where units 0 … i have k cycles: c(i, k−1) / c(i+1, k)."""
    counts = np.full((size + 1, num_cycles + 1), -np.inf)
    counts[0, 0] = 0.0
    for i in range(size):
        with np.errstate(divide="ignore"):
            counts[i + 1] = counts[i] + np.log(i)
        counts[i + 1, 1:] = np.logaddexp(counts[i + 1, 1:], counts[i, :-1])
    alone, all_ways = counts[:-1, :-1], counts[1:, 1:]
    possible = np.isfinite(alone)
    chances = np.exp(np.subtract(alone, all_ways, out=np.full(alone.shape, -np.inf), where=possible))
    return np.pad(chances, ((0, 0), (1, 0)))


@jax.jit
def _draw(key: PRNGKey, chances: Float[Array, "unit cycle"]) -> Int[Array, " unit"]:
    size, num_cycles = chances.shape[0], chances.shape[1] - 1
    key_alone, key_place = jax.random.split(key)
    levels = jax.random.uniform(key_alone, (size,), chances.dtype)

    def decide(num_left, i):
        alone = levels[i] < chances[i, num_left]
        return num_left - alone, alone

    _, alone = jax.lax.scan(decide, jnp.asarray(num_cycles), jnp.arange(size), reverse=True)
    places = jax.random.randint(key_place, (size,), 0, jnp.maximum(jnp.arange(size), 1))

    def insert(i, permutation):
        after = jnp.where(alone[i], i, places[i])
        return permutation.at[i].set(permutation[after]).at[after].set(i)

    return jax.lax.fori_loop(0, size, insert, jnp.arange(size))
