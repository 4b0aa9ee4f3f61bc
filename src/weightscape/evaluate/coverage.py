"""Calibration of a regression: do intervals hold as many targets as they promise?

    coverage(level) = mean 1[lower ≤ y ≤ upper],        PIT_n = F_n(y_n)

Intervals leave out as much below as above. PIT values, the probability integral transform, are uniform on (0, 1) where
predictions are calibrated: a histogram that bulges says too wide, one that sags says too narrow.
"""

import numpy as np
from jaxtyping import Array, ArrayLike, Float

from weightscape.predictive import Predictive


def coverage(predictive: Predictive, y: ArrayLike | list, level: float = 0.9) -> float:
    """The share of targets inside their interval; near `level` where predictions are calibrated."""
    predictive.require_task("regression", "coverage", "Use `ece`.")
    targets = predictive.check_targets(y)
    lower, upper = predictive.interval(level)
    return float(np.mean(np.asarray((lower <= targets) & (targets <= upper))))


def interval_width(predictive: Predictive, level: float = 0.9) -> float:
    """The mean width of the intervals, in original units: at equal coverage, narrower is better."""
    predictive.require_task("regression", "interval_width", "Use `entropy`.")
    lower, upper = predictive.interval(level)
    return float(np.mean(np.asarray(upper, np.float64) - np.asarray(lower, np.float64)))


def pit(predictive: Predictive, y: ArrayLike | list) -> Float[Array, "point ..."]:
    """F(y) of each target under its own predictive distribution."""
    predictive.require_task("regression", "pit", "Use `reliability`.")
    return predictive.cumulative(y)
