"""How methods differ from a reference over the splits of data sets: a table, a picture, and a finding."""

import math
from collections.abc import Sequence

from matplotlib.figure import Figure

from weightscape.evaluate.splits import SplitDifference, SplitScores, difference_over_splits
from weightscape.report.numbers import shown
from weightscape.report.report import Table
from weightscape.report.style import INK, MUTED, canvas, colour, styled

_CLEAR = 2.0
"""Standard errors; a smaller difference may be noise."""

Rows = Sequence[SplitScores]


def data_names(rows: Rows) -> list[str]:
    """The data sets in the order in which they come."""
    return list(dict.fromkeys(row.data for row in rows))


def method_names(rows: Rows) -> list[str]:
    """The methods in the order in which they come."""
    return list(dict.fromkeys(row.method for row in rows))


def rows_of(rows: Rows, data: str, method: str) -> list[SplitScores]:
    """Those of one method on one data set."""
    return [row for row in rows if (row.data, row.method) == (data, method)]


def difference(rows: Rows, data: str, method: str, reference: str) -> SplitDifference | None:
    """NLL of a method less that of the reference, or None where they share no split."""
    ours, theirs = rows_of(rows, data, method), rows_of(rows, data, reference)
    shared = {row.split for row in ours if row.scores} & {row.split for row in theirs if row.scores}
    return difference_over_splits(ours, theirs) if shared else None


def difference_table(rows: Rows, reference: str) -> Table:
    """Data sets by methods; beside each mean, on how many splits the method is better."""
    title = f"NLL less that of {reference}, split by split; negative is better, and on how many splits it is"
    others = _others(rows, reference)
    cell = lambda data, method: _cell(difference(rows, data, method, reference))
    body = tuple((data, *(cell(data, method) for method in others)) for data in data_names(rows))
    return Table(title, ("data", *others), body)


@styled
def plot_differences(rows: Rows, reference: str, sets: Sequence[str]) -> Figure:
    """A panel for each data set: NLL less that of the reference, with two standard errors, one line a method."""
    others = _others(rows, reference)
    figure, panels = canvas(len(sets), width=max(2.7, 5.4 / len(sets)), height=0.5 * len(others) + 1.4, share_y=True)
    for axis, data in zip(panels, sets, strict=True):
        axis.axvline(0, color=MUTED, ls="--", lw=1.2)
        for i, method in enumerate(others):
            one = difference(rows, data, method, reference)
            if one is not None:
                bar = None if math.isnan(one.standard_error) else 2 * one.standard_error
                axis.errorbar(one.value, i, xerr=bar, fmt="o", color=colour(i), ms=6, capsize=3)
        axis.set(title=data, xlabel="difference in NLL")
        axis.locator_params(axis="x", nbins=4)
        axis.margins(x=0.1)
        axis.grid(visible=False, axis="y")
    panels[0].set_yticks(range(len(others)), others, color=INK)
    panels[0].set_ylim(len(others) - 0.5, -0.5)
    return figure


def difference_finding(rows: Rows, reference: str) -> str:
    """Of each method, on which sets it is clearly better and clearly worse than the reference."""
    others = _others(rows, reference)
    if not others:
        return f"{reference} was run alone."
    clauses = [_clause(rows, method, reference) for method in others]
    return f"In NLL, by more than two standard errors over splits, {'; '.join(clauses)}."


def _clause(rows: Rows, method: str, reference: str) -> str:
    found = [(data, difference(rows, data, method, reference)) for data in data_names(rows)]
    known = [(data, one) for data, one in found if one is not None and not math.isnan(one.standard_error)]
    better = [data for data, one in known if one.value < -_CLEAR * one.standard_error]
    worse = [data for data, one in known if one.value > _CLEAR * one.standard_error]
    listed = lambda names: ", ".join(names) or "none"
    return f"{method} is better than {reference} on {listed(better)} and worse on {listed(worse)}"


def _others(rows: Rows, reference: str) -> list[str]:
    return [method for method in method_names(rows) if method != reference]


def _cell(one: SplitDifference | None) -> str:
    if one is None:
        return "–"
    error = "" if math.isnan(one.standard_error) else f" ± {one.standard_error:.2g}"
    return f"{shown(one.value)}{error} ({one.num_below} of {one.num_splits})"
