"""Several values of log p(D) of one model, with their error bars."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from weightscape.core.checks import require
from weightscape.inference import LogEvidence
from weightscape.report.style import canvas, colour, shortened, styled


@styled
def plot_log_evidences(named: Mapping[str, LogEvidence]) -> Figure:
    """One line for each, with two standard errors; the first is on top."""
    require(len(named) > 0, "A picture of evidences must have some", "none", "Pass at least one.")
    figure, (axis,) = canvas(1, width=6.6, height=1.4 + 0.5 * len(named))
    for i, each in enumerate(named.values()):
        axis.errorbar(each.value, -i, xerr=2 * each.standard_error, color=colour(i), marker="o", ms=6, capsize=4)
    axis.set_yticks([-i for i in range(len(named))], [shortened(name, 40) for name in named])
    axis.set_ylim(0.6 - len(named), 0.6)
    axis.set(xlabel="log p(D) in nats")
    axis.margins(x=0.15)
    return figure
