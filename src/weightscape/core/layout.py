"""Layout: where the entries of a parameter tree lie in one flat vector.

    vec(θ) runs through the leaves in the order of the tree, each row by row

A layout knows shapes only, so it costs nothing to keep and never recompiles.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from weightscape.core import tree
from weightscape.core.types import Tree


class Layout(eqx.Module):
    """The structure, paths, shapes and types of a tree's leaves; made by `Layout.of(tree)`."""

    structure: Any = eqx.field(static=True)
    paths: tuple[str, ...] = eqx.field(static=True)
    shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    dtypes: tuple[np.dtype, ...] = eqx.field(static=True)

    @staticmethod
    def of(like: Tree) -> "Layout":
        """The layout of a tree of arrays, or of their shapes."""
        named = tree.named_leaves(like)
        shapes = tuple(tuple(leaf.shape) for leaf in named.values())
        dtypes = tuple(np.dtype(leaf.dtype) for leaf in named.values())
        return Layout(jax.tree.structure(like), tuple(named), shapes, dtypes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many numbers each leaf holds."""
        return tuple(math.prod(shape) for shape in self.shapes)

    @property
    def size(self) -> int:
        """How many numbers the tree holds."""
        return sum(self.sizes)

    @property
    def dtype(self) -> np.dtype:
        """The type of the flat vector: the leaves' common one."""
        return np.dtype(jnp.result_type(*self.dtypes)) if self.dtypes else np.dtype(jnp.result_type(float))

    def flatten(self, params: Tree) -> Float[Array, " weight"]:
        """vec(θ)."""
        leaves = [jnp.ravel(leaf).astype(self.dtype) for leaf in jax.tree.leaves(params)]
        return jnp.concatenate(leaves) if leaves else jnp.zeros((0,), self.dtype)

    def unflatten(self, vector: Float[Array, " weight"]) -> Tree:
        """The tree whose entries are those of `vector`."""
        ends = np.cumsum(self.sizes)
        parts = [vector[end - size : end] for end, size in zip(ends, self.sizes, strict=True)]
        leaves = [part.reshape(s).astype(t) for part, s, t in zip(parts, self.shapes, self.dtypes, strict=True)]
        return jax.tree.unflatten(self.structure, leaves)

    def layers(self) -> dict[str, Int[np.ndarray, " _"]]:
        """Where the weights of each layer lie, by its name; a layer is the leaves that share a parent."""
        groups: dict[str, list[np.ndarray]] = {}
        for path in self.paths:
            groups.setdefault(layer_of(path), []).append(np.arange(self.size)[self.places(path)])
        return {name: np.concatenate(parts) for name, parts in groups.items()}

    def places(self, path: str) -> slice:
        """Where the leaf at `path` lies in the flat vector."""
        i = self.paths.index(path)
        start = sum(self.sizes[:i])
        return slice(start, start + self.sizes[i])


def layer_of(path: str) -> str:
    """The layer that a leaf belongs to: its parent, or itself where it has none."""
    return path.rpartition("/")[0] or path
