"""The bootstrap: how far would a score move if other points had come?

    score_b = score of n points drawn with replacement from the n,        standard error = std_b score_b

Points are drawn, not draws of weights: the error is that of a finite test set, with the predictions as they are.
Points must be independent. The score of two methods on the same points differs by less than their errors suggest,
since hard points are hard for both: `paired_difference` resamples both together.

A `MeanScore` costs a weighted mean for each resample. Any other function of rows is called once for each.

Reference: Efron and Tibshirani, An introduction to the bootstrap (1993), chapter 6.
"""

from typing import Any

import numpy as np
from jaxtyping import ArrayLike

from weightscape.core import PRNGKey
from weightscape.core.checks import require, shape_of
from weightscape.evaluate.pointwise import MeanScore
from weightscape.evaluate.probabilities import probability_table
from weightscape.evaluate.resampling import Difference, Means, Measured, Rows, RowScore, measure
from weightscape.predictive import Predictive

NUM_RESAMPLES = 1000
"""Enough to know a standard error within 1/√2000, about 2 %."""


def bootstrap(
    key: PRNGKey, score: MeanScore | RowScore, p: Any, y: ArrayLike | list, *, num_resamples: int = NUM_RESAMPLES
) -> Measured:
    """The score of all points, and its standard error.

    - `score`: a `MeanScore`, which gets `p` and `y` once; or a function such as `ece`, which gets rows of the table
      `p` and of `y` for each resample.
    - `p`: predictions; for a function of rows those of a classification, which stand for their table of
      probabilities, or any array with the point first.

    Example:
    >>> print(bootstrap(jax.random.key(0), ece, predictive, y))         # doctest: +SKIP
    0.03871 ± 0.011
    """
    statistic = _statistic("bootstrap", score, p, y)
    return measure(key, "bootstrap", [statistic], num_resamples)[0]


def paired_difference(
    key: PRNGKey,
    score: MeanScore | RowScore,
    p: Any,
    q: Any,
    y: ArrayLike | list,
    *,
    num_resamples: int = NUM_RESAMPLES,
) -> Measured:
    """score(p, y) − score(q, y) of two predictions for the same points, with the standard error of the difference."""
    caller = "paired_difference"
    pair = Difference(_statistic(caller, score, p, y), _statistic(caller, score, q, y))
    return measure(key, caller, [pair], num_resamples)[0]


def _statistic(caller: str, score: MeanScore | RowScore, p: Any, y: ArrayLike | list) -> Means | Rows:
    targets = np.asarray(y)
    if isinstance(score, MeanScore):
        columns = score.columns(p, y)
        _require_rows(caller, len(columns), targets)
        return Means(score, columns)
    if isinstance(p, Predictive):
        p.require_task("classification", f"{caller} of a function of rows", "Pass a `MeanScore`, or an array of rows.")
    table = probability_table(p) if isinstance(p, Predictive) else np.asarray(p)
    _require_rows(caller, len(table), targets)
    return Rows(score, table, targets)


def _require_rows(caller: str, num_points: int, targets: np.ndarray) -> None:
    asked = f"`y` of {caller} must have one row for each of {num_points} points"
    came, remedy = f"shape {shape_of(targets)}", "Pass targets of the same points."
    require(shape_of(targets)[:1] == (num_points,), asked, came, remedy)
