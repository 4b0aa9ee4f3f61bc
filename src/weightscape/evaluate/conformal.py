"""Conformal calibration: intervals and sets that keep their level, however wrong the predictive is.

    s_i = score of calibration point i,     t = the k-th smallest s_i,  k = ⌈(n + 1) level⌉,    answer {y : s(x, y) ≤ t}

Points held out from training are scored by how badly the predictive fits them, and a new point is given all targets
that fit no worse than the k-th of these n. If the calibration points and the new one are exchangeable (independent
from one distribution, say, and none of them trained on), the rank of the new score among all n + 1 is uniform, so

    level ≤ P(y in its answer) ≤ level + 1 / (n + 1),       and without ties P = k / (n + 1)

for any network, prior, method or number of draws. The probability is over the calibration points and the new one
together: with one calibration set the share of new points that are covered is Beta(k, n + 1 − k), and nothing is
promised for each x alone. The upper bound needs scores without ties.

Numbers are scored by the normalised residual |y − mean| / std. One factor then repairs a spread that is wrong by any
factor and leaves it wide where the predictive is wide; the score max(lower − y, y − upper) of conformalised quantiles
would add the same length everywhere, and the width of an interval, as a divisor, vanishes for rare counts. The price:
intervals are symmetric about the mean. Labels are scored by 1 − p_y. Of all sets with this coverage those of a true
p are the smallest on average; adaptive sets (APS) are larger, and without randomisation lose the upper bound.

References: Vovk, Gammerman and Shafer, Algorithmic learning in a random world (2005), proposition 4.1; Lei, G'Sell,
Rinaldo, Tibshirani and Wasserman, Distribution-free predictive inference for regression (2018), theorem 2.2 and section
5.2; Sadinle, Lei and Wasserman, Least ambiguous set-valued classifiers with bounded error levels (2019).
"""

import math
from fractions import Fraction

import numpy as np
from jaxtyping import ArrayLike, Bool, Float

from weightscape.core.checks import require, require_fraction, require_positive, shape_of
from weightscape.evaluate.probabilities import Probabilities, check_labels, probability_table
from weightscape.predictive import Predictive


def conformal_interval(
    calibration: Predictive, y: ArrayLike | list, test: Predictive, level: float = 0.9
) -> tuple[Float[np.ndarray, "test ..."], Float[np.ndarray, "test ..."]]:
    """Ends (lower, upper) = mean ∓ t std at the points of `test`, which hold y with probability of at least `level`.

    `calibration` and `test` are predictions of one posterior, `y` the targets of the calibration points in original
    units. The entries of a vector target have a t, and the guarantee, each alone.

    Example:
    >>> held_out = predict(draws, x_held_out)                                       # doctest: +SKIP
    >>> lower, upper = conformal_interval(held_out, y_held_out, predict(draws, x))  # doctest: +SKIP
    """
    mean, std = _moments(calibration, "calibration")
    new_mean, new_std = _moments(test, "test")
    targets = np.asarray(calibration.check_targets(y), np.float64)
    wanted, remedy = shape_of(mean)[1:], "Predict the test points with the draws that predicted the calibration points."
    asked = f"A target of `test` of conformal_interval must have shape {wanted}"
    require(new_mean.shape[1:] == wanted, asked, shape_of(new_mean)[1:], remedy)
    reach = _threshold(np.abs(targets - mean) / std, level) * new_std
    # A target whose score ties with t lies on an end, where the rounding of four operations must not put it outside.
    reach += 4 * np.finfo(np.float64).eps * (np.abs(new_mean) + reach)
    return new_mean - reach, new_mean + reach


def conformal_sets(
    calibration: Probabilities, y: ArrayLike | list, test: Probabilities, level: float = 0.9
) -> Bool[np.ndarray, "test class"]:
    """Which classes, 1 − p_c ≤ t, are in the set of each test point: it holds the label with probability ≥ `level`.

    `calibration` and `test` are predictions of one posterior, or their tables of probabilities, and `y` the labels of
    the calibration points. A set may be empty: no class is as probable as the labels of calibration points were.

    Example:
    >>> held_out, new = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]]), np.array([[0.7, 0.3], [0.5, 0.5]])
    >>> conformal_sets(held_out, [0, 0, 1], new, level=0.75)
    array([[ True, False],
           [False, False]])
    """
    known, table = probability_table(calibration), probability_table(test)
    labels = check_labels(y, known)
    asked, remedy = f"`test` of conformal_sets must have {known.shape[1]} classes", "Pass predictions of one problem."
    require(table.shape[1] == known.shape[1], asked, table.shape[1], remedy)
    # −p has the order of 1 − p, in which probabilities below 1e-16 would be one.
    return -table <= _threshold(-known[np.arange(len(labels)), labels], level)


def _moments(
    predictive: Predictive, name: str
) -> tuple[Float[np.ndarray, "point ..."], Float[np.ndarray, "point ..."]]:
    predictive.require_task("regression", "conformal_interval", "Use `conformal_sets`.")
    require_positive(f"`std` of `{name}` of conformal_interval", predictive.std)
    return np.asarray(predictive.mean, np.float64), np.asarray(predictive.std, np.float64)


def _threshold(scores: Float[np.ndarray, "point ..."], level: float) -> Float[np.ndarray, "..."]:
    """t, the ⌈(n + 1) level⌉-th smallest of the n scores; entry by entry where they are vectors."""
    require_fraction("`level` of a conformal prediction", level)
    # The level as it is written: in floating point 100 · 0.07 > 7, and the rank would be 8.
    written = Fraction(str(float(level)))
    fewest = math.ceil(written / (1 - written))
    asked = f"Calibration to level {level} must have at least {fewest} points"
    require(len(scores) >= fewest, asked, len(scores), "Hold out more points or lower the level.")
    rank = math.ceil(written * (len(scores) + 1))
    return np.asarray(np.sort(scores, axis=0)[rank - 1])
