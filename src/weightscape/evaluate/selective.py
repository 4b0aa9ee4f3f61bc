"""Selective prediction: how wrong are predictions if only the most certain ones are given?

    risk(k/n) = (1/k) Σ of the errors of the k points with the least uncertainty,       AURC = (1/n) Σ_k risk(k/n)

Coverage is the share k/n of points that are answered. A good uncertainty puts the errors last, so the curve rises with
coverage and its area is small; one that knows nothing has an area near the mean error. Points of equal uncertainty
have no order: the curve is the average over all their orders, in which each has the mean error of its equals.

For classes the error is 1 where the most probable class is wrong (`wrong`), for numbers the squared error
(`squared_error`); any other error of a point does.

Reference: Geifman and El-Yaniv, Selective classification for deep neural networks (2017), equations 1 and 2; the area
as in Geifman, Uziel and El-Yaniv, Bias-reduced uncertainty estimation for deep neural classifiers (2019), section 3.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float

from weightscape.core.checks import require, shape_of
from weightscape.evaluate.numbers import point_numbers


class RiskCoverage(NamedTuple):
    """The curve: the mean error of the points that are answered, against their share; both from one point to all."""

    coverage: Float[np.ndarray, " point"]
    risk: Float[np.ndarray, " point"]

    @property
    def area(self) -> float:
        """AURC, the mean risk over all coverages; in the units of the error, smaller is better."""
        return float(np.mean(self.risk))


def risk_coverage(uncertainty: ArrayLike | list, error: ArrayLike | list) -> RiskCoverage:
    """The curve for points with these uncertainties and errors.

    Example:
    >>> curve = risk_coverage([0.1, 0.9, 0.4], [0, 1, 0])
    >>> [round(float(risk), 3) for risk in curve.risk]
    [0.0, 0.0, 0.333]
    """
    unsure = point_numbers("`uncertainty` of risk_coverage", uncertainty)
    wrong = point_numbers("`error` of risk_coverage", error)
    remedy = "Pass the uncertainty and the error of the same points."
    require(
        wrong.shape == unsure.shape,
        f"`error` of risk_coverage must have shape {shape_of(unsure)}",
        shape_of(wrong),
        remedy,
    )
    _, place, sizes = np.unique(unsure, return_inverse=True, return_counts=True)
    of_equals = np.repeat(np.bincount(place, weights=wrong) / sizes, sizes)
    answered = np.arange(1, len(unsure) + 1)
    return RiskCoverage(answered / len(unsure), np.cumsum(of_equals) / answered)


def aurc(uncertainty: ArrayLike | list, error: ArrayLike | list) -> float:
    """The area under the risk–coverage curve; in the units of the error, smaller is better.

    Example:
    >>> aurc(entropy(predictive), wrong(predictive, y))                 # doctest: +SKIP
    """
    return risk_coverage(uncertainty, error).area
