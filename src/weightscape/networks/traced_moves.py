"""Steps of a program that only move the axes of an array, and where they take them.

An array whose axes were moved is described by its origins: for each of its axes the axis of the first array that lies
there, or None. Axes of size one carry nothing, so they have no origin; nor has an axis that was made by repeating.
"""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

Origins = tuple[int | None, ...]

MOVES = frozenset({"transpose", "reshape", "squeeze", "broadcast_in_dim", "convert_element_type", "copy"})
"""Operations that may only move axes, repeat the array, or round to another floating-point type."""


def origins_of(shape: tuple[int, ...]) -> Origins:
    """The origins of an array that was not moved yet."""
    return tuple(None if size == 1 else axis for axis, size in enumerate(shape))


def moved(name: str, options: Mapping[str, Any], before: Any, after: Any, origins: Origins) -> Origins | None:
    """The origins after the step `name`, or None where it does more than move axes.

    - `options`: the parameters of the step.  `before`, `after`: shape and type of its input and its output.
    - `origins`: those of its input.
    """
    if name not in MOVES:
        return None
    if name == "transpose":
        return tuple(origins[axis] for axis in options["permutation"])
    if name == "broadcast_in_dim":
        return _broadcast(tuple(map(int, options["broadcast_dimensions"])), before.shape, after.shape, origins)
    if not _both_floating(before.dtype, after.dtype) or (name == "reshape" and options["dimensions"] is not None):
        return None
    return _renamed(before.shape, after.shape, origins)


def _broadcast(axes: tuple[int, ...], before: tuple[int, ...], after: tuple[int, ...], origins: Origins) -> Origins:
    kept = {axis: origins[i] for i, axis in enumerate(axes) if before[i] == after[axis]}
    return tuple(kept.get(axis) for axis in range(len(after)))


def _renamed(before: tuple[int, ...], after: tuple[int, ...], origins: Origins) -> Origins | None:
    """Axes of size one come and go; all others keep their order and their sizes, or this is no move."""
    wide = [(size, origin) for size, origin in zip(before, origins, strict=True) if size != 1]
    if [size for size, _ in wide] != [size for size in after if size != 1]:
        return None
    remaining = iter(origin for _, origin in wide)
    return tuple(None if size == 1 else next(remaining) for size in after)


def _both_floating(before: np.dtype, after: np.dtype) -> bool:
    return jnp.issubdtype(before, jnp.floating) and jnp.issubdtype(after, jnp.floating)
