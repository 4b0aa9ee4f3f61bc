"""Pruning in a table and a picture: scores against the share of weights that are kept."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from weightscape.core.checks import require
from weightscape.evaluate.pruning import PruningRow
from weightscape.report.numbers import score_name, shown
from weightscape.report.report import Table
from weightscape.report.style import canvas, colour, styled


def pruning_table(title: str, rows: Sequence[PruningRow]) -> Table:
    """One row for each share: the samples' scores, then those of the mean network."""
    names = tuple(rows[0].samples)
    columns = (
        "kept",
        "weights",
        *(f"{score_name(n)}, samples" for n in names),
        *(f"{score_name(n)}, mean" for n in names),
    )
    return Table(title, columns, tuple(_cells(row) for row in rows))


@styled
def plot_pruning(curves: Mapping[str, Sequence[PruningRow]]) -> Figure:
    """Accuracy or RMSE, and NLL, against the share of weights kept: full lines of samples, dashed of the mean network.

    - `curves`: what `pruning_curve` returns, by the name of a method or a score.
    """
    require(bool(curves), "`curves` of plot_pruning must hold at least one", 0, "Pass {name: pruning_curve(...)}.")
    names = tuple(next(iter(curves.values()))[0].samples)
    figure, panels = canvas(len(names), width=4.6)
    for axis, name in zip(panels, names, strict=True):
        for i, (label, rows) in enumerate(curves.items()):
            shares = [100 * row.keep for row in rows]
            axis.plot(
                shares, [row.samples[name] for row in rows], "o-", ms=4, color=colour(i), label=f"{label}, samples"
            )
            mean = [row.mean_network[name] for row in rows]
            axis.plot(shares, mean, "s--", ms=3.5, lw=1.2, color=colour(i), label=f"{label}, mean network")
        axis.set(title=score_name(name), xlabel="weights kept, in percent", xlim=(102, -2))
    panels[0].legend(fontsize=8)
    return figure


def _cells(row: PruningRow) -> tuple[str, ...]:
    values = (*row.samples.values(), *row.mean_network.values())
    return (f"{100 * row.keep:g} %", shown(row.num_kept), *(shown(value) for value in values))
