"""The number of transpositions is the least number of swaps, and random permutations have the number asked for."""

import itertools
import math
from collections import Counter, deque

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from weightscape.core import InputError
from weightscape.geometry.transpositions import transpositions, with_transpositions
from weightscape.symmetry import Element

KEY = jax.random.key(0)


def fewest_swaps(size: int) -> dict[tuple[int, ...], int]:
    """By breadth-first search from the identity through all swaps of two places."""
    start = tuple(range(size))
    found, waiting = {start: 0}, deque([start])
    while waiting:
        here = waiting.popleft()
        for i, j in itertools.combinations(range(size), 2):
            there = list(here)
            there[i], there[j] = there[j], there[i]
            if tuple(there) not in found:
                found[tuple(there)] = found[here] + 1
                waiting.append(tuple(there))
    return found


def stirling(size: int, num_cycles: int) -> int:
    """How many permutations have that many cycles."""
    return sum(size - swaps == num_cycles for swaps in fewest_swaps(size).values())


@pytest.mark.parametrize("size", range(1, 7))
def test_it_is_the_least_number_of_swaps(size):
    swaps = fewest_swaps(size)
    permutations = jnp.asarray(list(swaps))
    np.testing.assert_array_equal(transpositions(permutations), list(swaps.values()))
    assert len(swaps) == math.factorial(size)


def test_cycles_of_many_lengths():
    sizes = (1, 2, 3, 7, 64, 100)
    cycles, start = [], 0
    for size in sizes:
        cycles += [start + (i + 1) % size for i in range(size)]
        start += size
    found = transpositions(cycles)
    assert type(found) is int and found == sum(size - 1 for size in sizes)
    inverse = np.argsort(cycles)
    conjugate = np.random.default_rng(0).permutation(len(cycles))
    assert transpositions(inverse) == found
    assert transpositions(conjugate[np.asarray(cycles)[np.argsort(conjugate)]]) == found


def test_parity_is_that_of_the_determinant():
    for i in range(20):
        permutation = jax.random.permutation(jax.random.fold_in(KEY, i), 9)
        sign = np.linalg.det(np.eye(9)[np.asarray(permutation)])
        assert round(sign) == (-1) ** transpositions(permutation)


def test_groups_of_an_element_are_summed():
    generator = np.random.default_rng(0)
    orders = tuple(jnp.asarray([generator.permutation(size) for _ in range(8)]) for size in (6, 5))
    rest = tuple(jnp.zeros((8, 0, size), int) for size in (6, 5))
    elements = Element(orders, rest, tuple(leaf.astype(float) for leaf in rest))
    counted = sum(transpositions(each) for each in orders)
    np.testing.assert_array_equal(transpositions(elements), counted)
    np.testing.assert_array_equal(jax.jit(jax.vmap(transpositions))(elements), counted)
    alone = jax.tree.map(lambda leaf: leaf[0], elements)
    assert transpositions(alone) == counted[0] and type(transpositions(alone)) is int


@pytest.mark.parametrize("size", [1, 6, 40])
def test_random_ones_have_the_number_asked_for(size):
    for number in sorted({0, 1, size // 2, size - 1} & set(range(size))):
        keys = jax.random.split(jax.random.fold_in(KEY, number), 50)
        drawn = jax.vmap(lambda key, number=number: with_transpositions(key, size, number))(keys)
        np.testing.assert_array_equal(transpositions(drawn), np.full(50, number))


@pytest.mark.parametrize(("size", "number"), [(4, 2), (5, 2), (5, 3), (5, 4)])
def test_random_ones_are_uniform(size, number):
    num_draws, num_kinds = 20_000, stirling(size, size - number)
    keys = jax.random.split(jax.random.key(size + 10 * number), num_draws)
    drawn = np.asarray(jax.vmap(lambda key: with_transpositions(key, size, number))(keys))
    counts = np.array(list(Counter(map(tuple, drawn.tolist())).values()))
    assert len(counts) == num_kinds
    expected = num_draws / num_kinds
    chi_squared = np.sum((counts - expected) ** 2) / expected
    # Mean k − 1 and variance 2 (k − 1); 8 standard deviations leave the gamma tail below one in a million.
    assert chi_squared < num_kinds - 1 + 8 * np.sqrt(2 * (num_kinds - 1))


def test_large_ones_are_drawn():
    """Stirling's numbers of this size overflow; their shares must not."""
    assert transpositions(with_transpositions(KEY, 1000, 700)) == 700


def test_errors_say_what_to_do(unchecked):
    with pytest.raises(InputError, match="Pass a whole number from 0 to 3"):
        with_transpositions(KEY, 4, 4)
    with pytest.raises(InputError, match="Pass a whole number from 0 to 3"):
        with_transpositions(KEY, 4, -1)
    with pytest.raises(InputError, match="must be a permutation"):
        transpositions([0, 0, 1])
