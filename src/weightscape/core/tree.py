"""Arithmetic on parameter trees.

A tree of arrays is treated as the vector of all its entries: sums, inner products and draws work leaf by leaf.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from weightscape.core.types import PRNGKey, Scalar, Tree


def add(left: Tree, right: Tree) -> Tree:
    """left + right."""
    return jax.tree.map(jnp.add, left, right)


def subtract(left: Tree, right: Tree) -> Tree:
    """left − right."""
    return jax.tree.map(jnp.subtract, left, right)


def scale(factor: Any, tree: Tree) -> Tree:
    """factor · tree, for a scalar factor."""
    return jax.tree.map(lambda leaf: factor * leaf, tree)


def total(tree: Tree) -> Scalar:
    """The sum of all entries."""
    return sum((jnp.sum(leaf) for leaf in jax.tree.leaves(tree)), start=jnp.zeros(()))


def dot(left: Tree, right: Tree) -> Scalar:
    """The inner product ⟨left, right⟩."""
    return total(jax.tree.map(jnp.multiply, left, right))


def norm(tree: Tree) -> Scalar:
    """The Euclidean norm ‖tree‖."""
    return jnp.sqrt(dot(tree, tree))


def size(tree: Tree) -> int:
    """How many numbers the tree holds."""
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(tree))


def num_bytes(tree: Tree) -> int:
    """How much memory the tree's leaves, or leaves of their shapes, take."""
    return sum(int(np.prod(leaf.shape)) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def all_finite(tree: Tree) -> Bool[Array, ""]:
    """Whether every entry is finite."""
    return jnp.all(jnp.array([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)] or [True]))


def sample_like(key: PRNGKey, draw: Callable[..., Array], tree: Tree) -> Tree:
    """A tree of independent draws: `draw(key, shape, dtype)` for each leaf."""
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, max(len(leaves), 1))
    drawn = [draw(keys[i], leaf.shape, leaf.dtype) for i, leaf in enumerate(leaves)]
    return jax.tree.unflatten(structure, drawn)


def normal_like(key: PRNGKey, tree: Tree) -> Tree:
    """A tree of independent standard-normal entries."""
    return sample_like(key, jax.random.normal, tree)


def named_leaves(tree: Tree) -> dict[str, Any]:
    """Leaves by their path, such as `layer0/weight`."""
    with_paths, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): leaf for path, leaf in with_paths}


def stack(trees: list[Tree]) -> Tree:
    """Trees of one structure as one tree with a new leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)
