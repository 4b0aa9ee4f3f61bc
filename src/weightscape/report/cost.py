"""What is won for the time: measures of several methods against the seconds they took."""

from collections.abc import Mapping
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from weightscape.core.checks import require
from weightscape.report.style import MUTED, canvas, colour, styled

_LEAST_SECONDS = 0.05


class Cost(NamedTuple):
    """Where a method stands: its seconds, and the measure."""

    seconds: float
    value: float


class Measure(NamedTuple):
    """What is drawn against seconds: every method's value, and a level worth a line, with its name."""

    costs: Mapping[str, Cost]
    level: float | None = None
    level_name: str = ""


@styled
def plot_cost(measures: Mapping[str, Measure]) -> Figure:
    """One panel for each measure: its values against seconds, on a logarithmic axis, each method by its name."""
    empty = not measures or any(not measure.costs for measure in measures.values())
    require(not empty, "A picture of costs must have a method", "none", "Pass at least one.")
    figure, axes = canvas(len(measures), width=5.4, height=4.2)
    for axis, (title, measure) in zip(axes, measures.items(), strict=True):
        _draw(axis, measure)
        axis.set_ylabel(title)
    return figure


def _draw(axis: Axes, measure: Measure) -> None:
    if measure.level is not None:
        axis.axhline(measure.level, color=MUTED, lw=1.2, ls="--", label=measure.level_name)
        axis.legend(loc="best")
    for i, (name, (seconds, value)) in enumerate(measure.costs.items()):
        place = max(seconds, _LEAST_SECONDS), value
        axis.plot(*place, "o", ms=8, color=colour(i))
        axis.annotate(name, place, xytext=(7, 5), textcoords="offset points", fontsize=9.5)
    axis.set(xlabel="seconds", xscale="log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter(lambda seconds, _: f"{seconds:g}")  # names are never read as formulas, ticks neither
    axis.minorticks_off()
    axis.margins(x=0.16, y=0.12)
