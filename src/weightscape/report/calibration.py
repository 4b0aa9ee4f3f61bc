"""Calibration: do predicted probabilities come true as often as they say?

For classes, the reliability diagram: of the predictions made with confidence c, a share c should be right. For numbers,
the probability integral transform u = P(Y ≤ y), which is uniform on [0, 1] for a calibrated predictive, and its
consequence, the coverage curve: a central interval of level q should hold a share q of the targets.
"""

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import binom

from weightscape.evaluate import Reliability
from weightscape.report.style import EPISTEMIC, MUTED, TOTAL, canvas, styled

_NUM_BINS = 10


@styled
def plot_reliability(curve: Reliability) -> Figure:
    """Accuracy against mean confidence in each bin; the area of a dot grows with the rows in its bin."""
    figure, (axis,) = canvas(width=5.0, height=4.3)
    draw_diagonal(axis)
    confidence, accuracy, count = (values[curve.num_points > 0] for values in curve)
    axis.vlines(confidence, confidence, accuracy, color=EPISTEMIC, lw=1.2, alpha=0.6)
    axis.scatter(confidence, accuracy, s=30 + 370 * count / count.max(), color=EPISTEMIC, alpha=0.7, lw=0, zorder=3)
    axis.set(xlabel="confidence", ylabel="share that is right", xlim=(0, 1.04), ylim=(0, 1.04))
    axis.legend(loc="upper left")
    return figure


@styled
def plot_coverage(pit: Float[np.ndarray, " point"]) -> Figure:
    """The histogram of u (left) and the coverage of central intervals (right).

    The grey band holds 90 % of the histogram heights that a calibrated predictive would give.
    """
    figure, (left, right) = canvas(2, width=4.6, height=3.7)
    _draw_histogram(left, pit)
    _draw_coverage(right, pit)
    return figure


def coverage(pit: Float[np.ndarray, " point"], levels: Float[np.ndarray, " level"]) -> Float[np.ndarray, " level"]:
    """The share of targets inside the central interval of each level: |2u − 1| ≤ level."""
    return np.mean(np.abs(2 * pit - 1)[:, None] <= levels[None, :], axis=0)


def _draw_histogram(axis: Axes, pit: np.ndarray) -> None:
    axis.hist(pit, _NUM_BINS, range=(0, 1), color=EPISTEMIC, alpha=0.65, rwidth=0.94)
    low, high = binom.ppf([0.05, 0.95], len(pit), 1 / _NUM_BINS)
    axis.axhspan(float(low), float(high), color=MUTED, alpha=0.18, lw=0, label="chance, if calibrated")
    axis.axhline(len(pit) / _NUM_BINS, color=MUTED, lw=1.2, ls="--")
    axis.margins(y=0.22)
    axis.set(xlabel="where the target fell in its prediction, u", ylabel="test rows", title="flat is calibrated")
    axis.legend(loc="upper center")


def _draw_coverage(axis: Axes, pit: np.ndarray) -> None:
    levels = np.linspace(0, 1, 101)
    low, high = binom.ppf(0.05, len(pit), levels) / len(pit), binom.ppf(0.95, len(pit), levels) / len(pit)
    axis.fill_between(levels, np.nan_to_num(low), np.nan_to_num(high), color=MUTED, alpha=0.18, lw=0)
    draw_diagonal(axis)
    axis.plot(levels, coverage(pit, levels), color=EPISTEMIC)
    axis.plot([0.9], coverage(pit, np.array([0.9])), "o", color=TOTAL, ms=8, mec=EPISTEMIC, label="90 % interval")
    axis.set(xlabel="level of the interval", ylabel="share of targets inside", title="coverage", ylim=(0, 1.02))
    axis.legend(loc="upper left")


def draw_diagonal(axis: Axes) -> None:
    """The line that calibrated predictions lie on."""
    axis.plot([0, 1], [0, 1], color=MUTED, lw=1.2, ls="--", label="calibrated")
