"""Scores over the splits of a data set: their means, and differences of two methods split by split.

    mean = Σ_s v_s / n,        standard error = √( Σ_s (v_s − mean)² / (n (n − 1)) ),        v_s the score of split s

A difference is taken within each split, v_s − w_s, and only over splits that both methods have: hard splits are hard
for both, so it is known better than either score. The splits of one data set share most of their training rows, so
their scores hang together, and these standard errors are too small rather than too large.

Reference: Nadeau and Bengio (2003), Inference for the generalization error, section 2.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from weightscape.core.checks import require
from weightscape.evaluate.resampling import Measured


class SplitScores(NamedTuple):
    """What one method scored on one split of a data set; no scores where it failed, and `failure` says why."""

    data: str
    split: int
    method: str
    scores: Mapping[str, float]
    seconds: float
    failure: str | None = None


class SplitDifference(NamedTuple):
    """The mean of v_s − w_s over splits that two methods share, and its standard error.

    - `num_below`: of `num_splits`, on how many v_s was below w_s.
    """

    value: float
    standard_error: float
    num_below: int
    num_splits: int


def over_splits(values: Sequence[float]) -> Measured:
    """The mean of one number for each split, and its standard error, which a single split does not have (NaN)."""
    require(len(values) > 0, "`values` of over_splits must hold at least one split", 0, "Pass one number for each.")
    numbers = np.asarray(values, np.float64)
    error = numbers.std(ddof=1) / math.sqrt(len(numbers)) if len(numbers) > 1 else math.nan
    return Measured(float(numbers.mean()), float(error))


def score_over_splits(rows: Sequence[SplitScores], score: str) -> Measured:
    """The mean of a score over all splits that have it."""
    return over_splits(list(_by_split(rows, score).values()))


def difference_over_splits(
    first: Sequence[SplitScores], second: Sequence[SplitScores], score: str = "nll"
) -> SplitDifference:
    """`first` less `second`, over the splits that both have."""
    ours, theirs = _by_split(first, score), _by_split(second, score)
    shared = [split for split in ours if split in theirs]
    require(len(shared) > 0, "Methods that are compared must share a split", "none", "Run both on the same splits.")
    differences = [ours[split] - theirs[split] for split in shared]
    return SplitDifference(*over_splits(differences), sum(each < 0 for each in differences), len(shared))


def _by_split(rows: Sequence[SplitScores], score: str) -> dict[int, float]:
    names = {(row.data, row.method) for row in rows}
    remedy = "Pass the rows of one method on one data set."
    require(len(names) <= 1, "Rows of splits must be of one method on one data set", sorted(names), remedy)
    return {row.split: row.scores[score] for row in rows if score in row.scores}
