"""What is won for the time: a measure of several methods against the seconds they took."""

from collections.abc import Mapping
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from weightscape.core.checks import require
from weightscape.report.style import MUTED, canvas, colour, styled

_LEAST_SECONDS = 0.05


class Cost(NamedTuple):
    """Where a method stands: its seconds, and the measure."""

    seconds: float
    value: float


@styled
def plot_cost(costs: Mapping[str, Cost], measure: str, *, level: float | None = None, level_name: str = "") -> Figure:
    """The measure against seconds, on a logarithmic axis, each method by its name.

    - `level`: a value worth a line, such as what two halves of the reference are apart.
    """
    require(len(costs) > 0, "A picture of costs must have a method", "none", "Pass at least one.")
    figure, (axis,) = canvas(width=6.4, height=4.4)
    if level is not None:
        axis.axhline(level, color=MUTED, lw=1.2, ls="--", label=level_name)
        axis.legend(loc="best")
    for i, (name, (seconds, value)) in enumerate(costs.items()):
        place = max(seconds, _LEAST_SECONDS), value
        axis.plot(*place, "o", ms=8, color=colour(i))
        axis.annotate(name, place, xytext=(7, 5), textcoords="offset points", fontsize=9.5)
    axis.set(xlabel="seconds", ylabel=measure, xscale="log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter(lambda seconds, _: f"{seconds:g}")  # names are never read as formulas, ticks neither
    axis.minorticks_off()
    axis.margins(x=0.16, y=0.12)
    return figure
