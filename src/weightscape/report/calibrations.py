"""Calibration of several methods in one figure."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from weightscape.evaluate import CoverageCurve, Reliability
from weightscape.report.calibration import draw_diagonal
from weightscape.report.style import MUTED, canvas, colour, styled

_MARKERS = "osD^vPX*"
_MARGIN = 0.06
_LEAST_POINTS = 10
"""Of a bin: the share that is right of fewer is mostly chance."""


@styled
def plot_reliabilities(curves: Mapping[str, Reliability]) -> Figure:
    """Accuracy against mean confidence, a line for each method; bins with fewer than ten rows are left out.

    The fullest bin of a method is drawn in any case.
    """
    figure, (axis,) = canvas(width=7.4, height=4.6)
    draw_diagonal(axis)
    lowest = 1.0
    for i, (name, curve) in enumerate(curves.items()):
        kept = curve.num_points >= min(_LEAST_POINTS, curve.num_points.max())
        confidence, accuracy = curve.confidence[kept], curve.accuracy[kept]
        lowest = min(lowest, confidence.min(), accuracy.min())
        axis.plot(confidence, accuracy, **_looks(i), label=name)
    # Where everyone is sure, the lower part of the square would be empty.
    ends = max(0.0, lowest - _MARGIN), 1 + _MARGIN / 2
    axis.set(xlabel="confidence", ylabel="share that is right", xlim=ends, ylim=ends)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside right upper")
    return figure


@styled
def plot_coverages(curves: Mapping[str, CoverageCurve]) -> Figure:
    """The share of targets inside central intervals against their level, a line for each method.

    The grey band holds 90 % of what a calibrated predictive would give, level by level.
    """
    figure, (axis,) = canvas(width=7.4, height=4.6)
    first = next(iter(curves.values()))
    chance = {"color": MUTED, "alpha": 0.18, "lw": 0, "label": "chance, if calibrated"}
    axis.fill_between(first.level, first.lower, first.upper, **chance)
    draw_diagonal(axis)
    for i, (name, curve) in enumerate(curves.items()):
        axis.plot(curve.level, curve.coverage, **_looks(i), label=name)
    axis.set(xlabel="level of the interval", ylabel="share of targets inside", xlim=(0, 1), ylim=(0, 1.02))
    figure.legend(*axis.get_legend_handles_labels(), loc="outside right upper")
    return figure


def _looks(i: int) -> dict[str, Any]:
    """Colour and marker of the i-th method: two signs to tell it by."""
    return {"marker": _MARKERS[i % len(_MARKERS)], "ms": 5.5, "lw": 1.3, "color": colour(i), "alpha": 0.85}
