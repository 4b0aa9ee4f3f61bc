"""Calibration of several methods in one figure."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from weightscape.evaluate import CoverageCurve, Reliability
from weightscape.report.calibration import draw_diagonal
from weightscape.report.style import MUTED, canvas, colour, styled

_MARKERS = "osD^vPX*"
_LEAST_POINTS = 5
"""Of a bin: the share that is right of fewer is mostly chance."""


@styled
def plot_reliabilities(curves: Mapping[str, Reliability]) -> Figure:
    """Accuracy against mean confidence, a line for each method; bins with fewer than five rows are left out."""
    figure, (axis,) = canvas(width=6.4, height=4.6)
    draw_diagonal(axis)
    for i, (name, curve) in enumerate(curves.items()):
        kept = curve.num_points >= _LEAST_POINTS
        marker = _MARKERS[i % len(_MARKERS)]
        axis.plot(
            curve.confidence[kept], curve.accuracy[kept], marker=marker, ms=5, lw=1.3, color=colour(i), label=name
        )
    axis.set(xlabel="confidence", ylabel="share that is right", xlim=(0, 1.04), ylim=(0, 1.04))
    axis.legend(loc="upper left", fontsize=8.5)
    return figure


@styled
def plot_coverages(curves: Mapping[str, CoverageCurve]) -> Figure:
    """The share of targets inside central intervals against their level, a line for each method.

    The grey band holds 90 % of what a calibrated predictive would give, level by level.
    """
    figure, (axis,) = canvas(width=6.4, height=4.6)
    first = next(iter(curves.values()))
    axis.fill_between(
        first.level, first.lower, first.upper, color=MUTED, alpha=0.18, lw=0, label="chance, if calibrated"
    )
    draw_diagonal(axis)
    for i, (name, curve) in enumerate(curves.items()):
        axis.plot(
            curve.level, curve.coverage, marker=_MARKERS[i % len(_MARKERS)], ms=4, lw=1.3, color=colour(i), label=name
        )
    axis.set(xlabel="level of the interval", ylabel="share of targets inside", xlim=(0, 1), ylim=(0, 1.02))
    axis.legend(loc="upper left", fontsize=8.5)
    return figure
