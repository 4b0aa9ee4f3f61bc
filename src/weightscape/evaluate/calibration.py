"""Calibration of a classification: are predictions made with confidence p right in a share p of cases?

    ECE = Σ_b (n_b / n) |accuracy_b − confidence_b|

Points are put in bins by their confidence, the probability of the most probable class. The B bins have equal width on
(0, 1): bin b holds b/B ≤ confidence < (b+1)/B, and the last one also holds 1. The value depends on the binning, so
say it beside the number; the default is 15 bins.

Reference: Guo, Pleiss, Sun and Weinberger, On calibration of modern neural networks (2017), equation 3.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float, Int

from weightscape.core.checks import require_count
from weightscape.evaluate.probabilities import Probabilities, check_labels, probability_table

NUM_BINS = 15


class Reliability(NamedTuple):
    """The reliability curve: the mean confidence, the accuracy and the number of points of each bin.

    Confidence and accuracy are nan where a bin is empty.
    """

    confidence: Float[np.ndarray, " bin"]
    accuracy: Float[np.ndarray, " bin"]
    num_points: Int[np.ndarray, " bin"]


def reliability(p: Probabilities, y: ArrayLike | list, num_bins: int = NUM_BINS) -> Reliability:
    """Accuracy against confidence, bin by bin."""
    require_count("`num_bins` of reliability", num_bins)
    table = probability_table(p)
    right = np.argmax(table, axis=1) == check_labels(y, table)
    confidence = table.max(axis=1)
    bins = confidence_bins(confidence, num_bins)
    count = np.bincount(bins, minlength=num_bins)
    divisor = np.where(count > 0, count, np.nan)
    sums = [np.bincount(bins, weights=values, minlength=num_bins) for values in (confidence, right)]
    return Reliability(sums[0] / divisor, sums[1] / divisor, count)


def confidence_bins(confidence: Float[np.ndarray, " point"], num_bins: int) -> Int[np.ndarray, " point"]:
    """The bin of each confidence."""
    return np.minimum((confidence * num_bins).astype(int), num_bins - 1)


def ece(p: Probabilities, y: ArrayLike | list, num_bins: int = NUM_BINS) -> float:
    """The expected calibration error over `num_bins` bins of equal width."""
    curve = reliability(p, y, num_bins)
    return float(np.nansum(np.abs(curve.accuracy - curve.confidence) * curve.num_points) / np.sum(curve.num_points))
