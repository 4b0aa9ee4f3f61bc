"""Calibration curves of a regression: coverage over all levels, and the histogram of PIT values.

    coverage(ℓ) = mean_n 1[c_n ≤ ℓ],    c_n = |2 F_n(y_n) − 1|,        area = ∫₀¹ |coverage(ℓ) − ℓ| dℓ

c_n is the level of the smallest central interval that holds y_n, so one evaluation of F gives all levels at once. The
area, taken exactly from the sorted c_n, is 0 where every interval keeps its promise and ½ where all targets are
outside all intervals, or all of them medians. Of n calibrated points it is about 0.3/√n by chance.

Entries of vector targets count as points of their own. Bands are for independent points and for each bin or level
alone: with level 0.9 one in ten leaves it by chance.

Reference: Kuleshov, Fenner and Ermon, Accurate uncertainties for deep learning using calibrated regression (2018).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float, Int
from scipy.stats import binom

from weightscape.core.checks import require, require_count, require_fraction
from weightscape.evaluate.coverage import pit
from weightscape.predictive import Predictive

LEVELS = tuple(i / 20 for i in range(1, 20))


class CoverageCurve(NamedTuple):
    """The share of targets inside their intervals at each level, and the band it keeps to where all is calibrated."""

    level: Float[np.ndarray, " level"]
    coverage: Float[np.ndarray, " level"]
    lower: Float[np.ndarray, " level"]
    upper: Float[np.ndarray, " level"]


class PitHistogram(NamedTuple):
    """How many PIT values lie in each bin of equal width on (0, 1), and the band of counts where they are uniform.

    - `edges`: of the bins; a value on an edge belongs to the bin above, 1 to the last.
    - `lower`, `upper`: whole numbers that a count lies between, ends included, with at least the band's probability.
    """

    edges: Float[np.ndarray, " edge"]
    num_values: Int[np.ndarray, " bin"]
    lower: int
    upper: int


def coverage_curve(
    predictive: Predictive, y: ArrayLike | list, levels: Sequence[float] = LEVELS, *, band: float = 0.9
) -> CoverageCurve:
    """Coverage at each of `levels`, with the central band of probability `band` around the level itself."""
    require(len(levels) > 0, "`levels` of coverage_curve must hold at least one", 0, "Pass levels such as (0.5, 0.9).")
    for level in levels:
        require_fraction("A level of coverage_curve", level)
    require_fraction("`band` of coverage_curve", band)
    held, asked = np.sort(_central_levels(predictive, y)), np.asarray(levels, np.float64)
    ends = (binom.ppf(end, len(held), asked) / len(held) for end in _ends(band))
    return CoverageCurve(asked, np.searchsorted(held, asked, side="right") / len(held), *ends)


def miscalibration_area(predictive: Predictive, y: ArrayLike | list) -> float:
    """∫₀¹ |coverage(ℓ) − ℓ| dℓ, between 0 and ½; smaller is better."""
    held = np.sort(_central_levels(predictive, y))
    edges = np.linspace(0, 1, len(held) + 1)
    # Over the inverse of the coverage: between its steps i/n the level is the i-th c, the promise runs on.
    return float(np.sum(_area_between(held, edges[:-1], edges[1:])))


def pit_histogram(
    predictive: Predictive, y: ArrayLike | list, num_bins: int = 10, *, band: float = 0.9
) -> PitHistogram:
    """Counts of PIT values: a bulge says too wide, a sag too narrow, a slope too low or too high."""
    require_count("`num_bins` of pit_histogram", num_bins)
    require_fraction("`band` of pit_histogram", band)
    values = np.asarray(pit(predictive, y), np.float64).ravel()
    counts, edges = np.histogram(np.clip(values, 0, 1), bins=num_bins, range=(0, 1))
    lower, upper = (int(binom.ppf(end, len(values), 1 / num_bins)) for end in _ends(band))
    return PitHistogram(edges, counts, lower, upper)


def _central_levels(predictive: Predictive, y: ArrayLike | list) -> Float[np.ndarray, " value"]:
    return np.abs(2 * np.asarray(pit(predictive, y), np.float64).ravel() - 1)


def _ends(band: float) -> tuple[float, float]:
    return (1 - band) / 2, (1 + band) / 2


def _area_between(
    level: Float[np.ndarray, " value"], start: Float[np.ndarray, " value"], end: Float[np.ndarray, " value"]
) -> Float[np.ndarray, " value"]:
    """∫ |level − u| du from start to end."""
    signed_square = lambda u: np.sign(u - level) * (u - level) ** 2
    return (signed_square(end) - signed_square(start)) / 2
