"""Predictions in double precision, from weights of any precision.

In single precision a row's prediction changes in its last digit with the rows beside it, since sums are taken in
another order. scikit-learn asks for predictions of rows, not of tables: so they are computed with twice the digits.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from weightscape.core.layout import Layout
from weightscape.core.types import Tree
from weightscape.draws import Draws
from weightscape.inference import Approximation
from weightscape.predictive import Predictive, predict_result


def predicted(result: Draws | Approximation, x: np.ndarray) -> Predictive:
    """Predictions in the precision of the weights, the same each time."""
    return predict_result(jax.random.key(0), result, x)


def in_double(
    result: Draws | Approximation, x: np.ndarray, summary: Callable[[Predictive], tuple[Any, ...]]
) -> tuple[np.ndarray, ...]:
    """`summary` of the predictions at `x`, computed in double precision."""
    with jax.enable_x64(True):
        return tuple(np.asarray(part) for part in summary(predicted(_widened(result), x)))


def _widened(result: Draws | Approximation) -> Any:
    return jax.tree.map(_wide, result, is_leaf=lambda node: isinstance(node, Layout))


def _wide(leaf: Tree) -> Tree:
    if isinstance(leaf, Layout):
        return dataclasses.replace(leaf, dtypes=(np.dtype(np.float64),) * len(leaf.dtypes))
    if isinstance(leaf, jax.Array | np.ndarray) and jax.numpy.issubdtype(leaf.dtype, np.floating):
        wide = np.asarray(leaf, np.float64)
        return jax.numpy.asarray(wide) if isinstance(leaf, jax.Array) else wide
    return leaf
