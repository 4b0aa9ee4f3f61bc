"""A function of many rows, a few at a time: one program, bounded memory, results on the host."""

from collections.abc import Callable

import jax
import numpy as np

from weightscape.core.loop import map_chains
from weightscape.core.types import Tree


def in_batches(function: Callable[..., Tree], batch_size: int, *rows: Tree) -> Tree:
    """`function` of every row of `rows`, sharded over devices; the last batch is padded, so that all compile to one."""
    num, parts = len(jax.tree.leaves(rows)[0]), []
    for start in range(0, num, batch_size):
        chosen = np.minimum(np.arange(start, start + batch_size), num - 1)
        part = map_chains(function, *jax.tree.map(lambda leaf, chosen=chosen: leaf[chosen], rows))
        parts.append(jax.tree.map(lambda leaf, start=start: np.asarray(leaf)[: num - start], part))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
