"""Scores of single points, and scores that are functions of their means.

    score = g(mean_n s_n),          s_n = s(p_n, y_n)

g is the identity for most, the root for RMSE. The expected calibration error is one of them too: with a column for each
bin b, s_nb = 1[n in b] (1[right] − confidence_n) and g = Σ_b |·|. What has this form is resampled fast, since a
resample changes only the weights of a mean. Entries of a vector target are averaged first: they belong to one point.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import ArrayLike, Float

from weightscape.evaluate.calibration import NUM_BINS, confidence_bins
from weightscape.evaluate.crps import pointwise_crps
from weightscape.evaluate.numbers import over_entries
from weightscape.evaluate.probabilities import Probabilities, check_labels, probability_table
from weightscape.predictive import Predictive


@dataclasses.dataclass(frozen=True)
class MeanScore:
    """g(mean_n s(p_n, y_n)).

    - `pointwise`: s, from predictions and targets to one number, or one row of numbers, for each point.
    - `finish`: g, from the means of each resample, (resample, column), to its scores, (resample,); None where s is one
      number and g the identity.

    Example:
    >>> absolute_error = MeanScore(lambda predictive, y: abs(predictive.mean - y))
    """

    pointwise: Callable[[Any, Any], Float[np.ndarray, " _point"] | Float[np.ndarray, "_point _column"]]
    finish: Callable[[np.ndarray], np.ndarray] | None = None

    def columns(self, p: Any, y: Any) -> Float[np.ndarray, "point column"]:
        """s(p, y) in double precision, with a column axis."""
        values = np.asarray(self.pointwise(p, y), np.float64)
        return values[:, None] if values.ndim == 1 else values

    def of_means(self, means: Float[np.ndarray, "resample column"]) -> Float[np.ndarray, " resample"]:
        """g of the means."""
        return means[:, 0] if self.finish is None else self.finish(means)

    def __call__(self, p: Any, y: Any) -> float:
        """The score of all points."""
        return float(self.of_means(self.columns(p, y).mean(axis=0, keepdims=True))[0])


def wrong(p: Probabilities, y: ArrayLike | list) -> Float[np.ndarray, " point"]:
    """1 where the most probable class is not the label; of equal ones the first counts."""
    return 1 - right(p, y)


def right(p: Probabilities, y: ArrayLike | list) -> Float[np.ndarray, " point"]:
    """1 where the most probable class is the label; of equal ones the first counts."""
    table = probability_table(p)
    return (np.argmax(table, axis=1) == check_labels(y, table)).astype(np.float64)


def negative_log_density(predictive: Predictive, y: ArrayLike | list) -> Float[np.ndarray, " point"]:
    """−log p(y | x, D)."""
    return -np.asarray(predictive.log_density(y), np.float64)


def pointwise_brier(p: Probabilities, y: ArrayLike | list) -> Float[np.ndarray, " point"]:
    """Σ_c (p_c − 1[y = c])²."""
    table = probability_table(p)
    return np.sum((table - np.eye(table.shape[1])[check_labels(y, table)]) ** 2, axis=1)


def calibration_gaps(p: Probabilities, y: ArrayLike | list, num_bins: int = NUM_BINS) -> Float[np.ndarray, "point bin"]:
    """1[right] − confidence in the column of the point's bin, zero in the others; bins as in `reliability`."""
    table = probability_table(p)
    confidence = table.max(axis=1)
    bins = confidence_bins(confidence, num_bins)
    return np.eye(num_bins)[bins] * (right(table, y) - confidence)[:, None]


def squared_error(predictive: Predictive, y: ArrayLike | list) -> Float[np.ndarray, " point"]:
    """(E[y | x, D] − y)², in squared original units."""
    predictive.require_task("regression", "squared_error", "Use `wrong`.")
    mean, targets = np.asarray(predictive.mean, np.float64), np.asarray(predictive.check_targets(y), np.float64)
    return over_entries((mean - targets) ** 2)


def inside(predictive: Predictive, y: ArrayLike | list, level: float = 0.9) -> Float[np.ndarray, " point"]:
    """1 where the target lies in its interval; of a vector target, the share of its entries that do."""
    predictive.require_task("regression", "inside", "Use `right`.")
    targets = predictive.check_targets(y)
    lower, upper = predictive.interval(level)
    return over_entries((lower <= targets) & (targets <= upper))


def _sum_of_sizes(means: np.ndarray) -> np.ndarray:
    return np.sum(np.abs(means), axis=1)


def _root(means: np.ndarray) -> np.ndarray:
    return np.sqrt(means[:, 0])


CLASS_SCORES = {
    "accuracy": MeanScore(right),
    "nll": MeanScore(negative_log_density),
    "brier": MeanScore(pointwise_brier),
    "ece": MeanScore(calibration_gaps, _sum_of_sizes),
}
"""The scores of `scores` for classes, by name."""

NUMBER_SCORES = {
    "rmse": MeanScore(squared_error, _root),
    "nll": MeanScore(negative_log_density),
    "crps": MeanScore(lambda predictive, y: over_entries(pointwise_crps(predictive, y))),
    "coverage_90": MeanScore(inside),
}
"""The scores of `scores` for numbers, by name."""
