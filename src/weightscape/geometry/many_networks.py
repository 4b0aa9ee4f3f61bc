"""The networks in draws, a chunk at a time: matched to a reference, moved, averaged.

Draws may be memory-mapped and larger than memory. Only one chunk of them is on the device at once, and all chunks have
one size, so that one program serves them all.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from weightscape.core import tree
from weightscape.core.progress import Progress
from weightscape.core.types import PRNGKey, Tree
from weightscape.draws.draws import Host
from weightscape.geometry.match import Matching
from weightscape.geometry.multipliers import exponent_kinds
from weightscape.symmetry import Element, Symmetry

_MEMORY = 128 * 2**20
"""Larger chunks take longer for each network: the memory of arrays beyond some 32 MiB is fetched anew each time."""


class ManyNetworks(NamedTuple):
    """Weights with leading axes (chain, draw), and how they are matched.

    - `memory`: bytes that the work on one chunk may take; one network is always worked on.
    """

    params: Tree
    symmetry: Symmetry
    matching: Matching
    progress: Progress
    memory: int = _MEMORY

    @property
    def shape(self) -> tuple[int, int]:
        """How many chains, how many draws of each."""
        return np.shape(jax.tree.leaves(self.params)[0])[:2]

    def __len__(self) -> int:
        return math.prod(self.shape)

    def one(self, number: int) -> Tree:
        """The network of this number, counted chain by chain."""
        return jax.tree.map(lambda leaf: leaf[0], self._rows(slice(number, number + 1)))

    def match_all(self, key: PRNGKey, reference: Tree, elements: Element | None = None) -> Element:
        """One element for each network, on one leading axis, that brings it close to the reference.

        - `elements`: have been applied before; those that come back are the whole ones.
        """
        found = []
        self.progress.start("rebase", len(self))
        try:
            for rows in self._chunks():
                before = None if elements is None else _take(elements, rows)
                params = self._rows(rows) if before is None else self._moved(rows, before)
                matched = self.matching.match_many(key, self.symmetry, self._padded(params), reference)
                new = jax.tree.map(lambda leaf, rows=rows: leaf[: rows.stop - rows.start], matched.element)
                found.append(new if before is None else compose_many(self.symmetry, new, before))
                distance = float(jnp.mean(matched.distance[: rows.stop - rows.start]))
                self.progress.advance(rows.stop, {"distance": distance})
        finally:
            self.progress.finish()
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *found)

    def mean(self, elements: Element) -> Tree:
        """The average of all networks after their elements."""
        total = jax.tree.map(lambda leaf: np.zeros(leaf.shape[2:], np.float64), self.params)
        for rows in self._chunks():
            part = self._moved(rows, _take(elements, rows))
            summed = jax.tree.map(lambda leaf: np.sum(np.asarray(leaf), axis=0, dtype=np.float64), part)
            total = jax.tree.map(np.add, total, summed)
        return jax.tree.map(lambda leaf, like: jnp.asarray(leaf / len(self), like.dtype), total, self.params)

    def moved(self, elements: Element) -> Tree:
        """All networks after their elements, on the host, with leading axes (chain, draw)."""
        made = jax.tree.map(lambda leaf: np.empty(leaf.shape, leaf.dtype), self.params)
        for rows in self._chunks():
            part = self._moved(rows, _take(elements, rows))
            for into, leaf in zip(jax.tree.leaves(made), jax.tree.leaves(part), strict=True):
                into.reshape(-1, *into.shape[2:])[rows] = leaf
        return made

    def _chunks(self) -> Iterator[slice]:
        size = self._chunk_size()
        return (slice(start, min(start + size, len(self))) for start in range(0, len(self), size))

    def _chunk_size(self) -> int:
        one = tree.num_bytes(jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[2:], leaf.dtype), self.params))
        pairs = [len(exponent_kinds(group)) * group.size**2 for group in self.symmetry.groups]
        gains = 3 * max(pairs, default=0) * np.dtype(jnp.result_type(float)).itemsize
        return max(1, min(len(self), self.memory // (3 * one + gains)))

    def _places(self, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        return np.unravel_index(np.arange(rows.start, rows.stop), self.shape)

    def _rows(self, rows: slice) -> Tree:
        return jax.tree.map(lambda leaf: jnp.asarray(_flat_or_picked(leaf, rows, self._places(rows))), self.params)

    def _padded(self, params: Tree) -> Tree:
        """A chunk of the size that all have; the last network is repeated."""
        missing = self._chunk_size() - len(jax.tree.leaves(params)[0])
        fill = lambda leaf: jnp.concatenate([leaf, jnp.repeat(leaf[-1:], missing, axis=0)])
        return jax.tree.map(fill, params) if missing else params

    def _moved(self, rows: slice, elements: Element) -> Tree:
        count = rows.stop - rows.start
        moved = apply_many(self.symmetry, self._padded(self._rows(rows)), self._padded(elements))
        return jax.tree.map(lambda leaf: leaf[:count], moved)


@eqx.filter_jit
def apply_many(symmetry: Symmetry, params: Tree, elements: Element) -> Tree:
    """Each network after its own element."""
    return jax.vmap(symmetry.apply)(params, elements)


@eqx.filter_jit
def compose_many(symmetry: Symmetry, second: Element, first: Element) -> Element:
    """Each pair of elements as one."""
    return jax.vmap(symmetry.compose)(second, first)


def _flat_or_picked(leaf: Host, rows: slice, where: tuple[np.ndarray, np.ndarray]) -> Host:
    """Some networks of a leaf; of an array that lies in one piece, on disk perhaps, without a copy."""
    whole = isinstance(leaf, np.ndarray) and leaf.flags.c_contiguous
    return leaf.reshape(-1, *leaf.shape[2:])[rows] if whole else leaf[where]


def _take(elements: Element, rows: slice) -> Element:
    return jax.tree.map(lambda leaf: leaf[rows], elements)
