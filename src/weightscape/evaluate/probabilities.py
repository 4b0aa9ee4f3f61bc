"""Class probabilities and labels as arrays, checked: what the scores of classifications work on."""

from typing import TypeAlias

import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from weightscape.core.checks import require, require_finite, require_type, shape_of
from weightscape.predictive import Predictive

Probabilities: TypeAlias = Predictive | Float[Array, "_point _class"] | Float[np.ndarray, "_point _class"]
"""Predictions of a classification, or their table of probabilities with one row for each point."""

# Rows of float32 tables sum to one within rounding; anything worse is not a table of probabilities.
_SUM_TOLERANCE = 1e-3


def probability_table(p: Probabilities) -> Float[np.ndarray, "point class"]:
    """The probabilities in double precision; raises for a regression and for rows that do not sum to one."""
    table = np.asarray(p.probabilities if isinstance(p, Predictive) else p, np.float64)
    asked, remedy = "Probabilities must have shape (point, class)", "Pass one row for each point."
    require(table.ndim == 2 and table.size > 0, asked, shape_of(table), remedy)
    require_finite("Probabilities", table)
    remedy = "Pass probabilities, not logits."
    require(bool(np.all(table >= 0)), "Probabilities must not be negative", f"a minimum of {table.min():.6g}", remedy)
    sums = table.sum(axis=1)
    worst = sums[np.argmax(np.abs(sums - 1))]
    require(bool(abs(worst - 1) < _SUM_TOLERANCE), "Probabilities of a point must sum to 1", f"{worst:.6g}", remedy)
    return table


def check_labels(y: ArrayLike | list, table: Float[np.ndarray, "point class"]) -> Int[np.ndarray, " point"]:
    """`y` as one class number for each row of `table`."""
    labels, (num_points, num_classes) = np.asarray(y), table.shape
    remedy = f"Encode the classes as the whole numbers 0 to {num_classes - 1}."
    require_type(labels.dtype.kind in "iu", "`y` must hold whole numbers", f"type {labels.dtype}", remedy)
    wanted = (num_points,)
    require(labels.shape == wanted, f"`y` must have shape {wanted}", shape_of(labels), "Pass one label for each point.")
    inside = labels.min() >= 0 and labels.max() < num_classes
    require(bool(inside), f"`y` must lie in 0..{num_classes - 1}", f"{labels.min()}..{labels.max()}", remedy)
    return labels.astype(np.int64)
