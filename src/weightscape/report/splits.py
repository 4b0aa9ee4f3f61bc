"""Methods on the splits of data sets: tables of scores and of paired differences, a picture, and a finding."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from weightscape.evaluate.resampling import Measured
from weightscape.evaluate.splits import SplitScores, difference_over_splits, over_splits, score_over_splits
from weightscape.report.numbers import counted, score_name, shown
from weightscape.report.report import Picture, Report, Table
from weightscape.report.style import INK, MUTED, canvas, colour, styled

SCORES = ("rmse", "nll", "coverage_90")
_CLEAR = 2.0
"""Standard errors; a smaller difference may be noise."""

_MOST_PANELS = 5
_NONE = "–"

Rows = Sequence[SplitScores]


def report_splits(rows: Rows, reference: str, settings: Mapping[str, str]) -> Report:
    """A page: a table for each data set, the differences to the reference, and their picture."""
    sets, methods = data_names(rows), _methods(rows)
    tables = (*(score_table(rows, data) for data in sets), difference_table(rows, reference))
    caption = (
        f"NLL less that of {reference} on the same splits, in nats a row: left of the line is better. Bars are two "
        "standard errors over splits."
    )
    groups = [sets[i : i + _MOST_PANELS] for i in range(0, len(sets), _MOST_PANELS)] if len(methods) > 1 else []
    pictures = tuple(
        Picture(f"differences-{i + 1}", "Differences in NLL", caption, plot_differences(rows, reference, group))
        for i, group in enumerate(groups)
    )
    failures = {f"{row.data} {row.split} {row.method}": f"failed: {row.failure}" for row in rows if row.failure}
    title = f"{counted(len(methods), 'method')} on {counted(len(sets), 'data set')}"
    return Report(title, finding(rows, reference), tables, pictures, {**settings, **failures})


def data_names(rows: Rows) -> list[str]:
    """The data sets in the order in which they come."""
    return list(dict.fromkeys(row.data for row in rows))


def score_table(rows: Rows, data: str) -> Table:
    """Mean ± standard error over splits of each score, one row for each method."""
    names = [row.method for row in rows if row.data == data]
    columns = ("method", "splits", *(score_name(score) for score in SCORES), "LPPD a row", "seconds")
    body = []
    for method in dict.fromkeys(names):
        mine = _chosen(rows, data, method)
        found = [_mean(mine, score) for score in SCORES]
        nll = found[SCORES.index("nll")]
        lppd = None if nll is None else Measured(-nll.value, nll.standard_error)
        seconds = over_splits([row.seconds for row in mine])
        body.append((method, _count(mine), *(_cell(one) for one in (*found, lppd)), f"{seconds.value:.1f}"))
    return Table(f"{data}: mean ± standard error over splits, in original units", columns, tuple(body))


def difference_table(rows: Rows, reference: str) -> Table:
    """The paired differences in NLL to the reference: methods by data sets."""
    sets, others = data_names(rows), [method for method in _methods(rows) if method != reference]
    cell = lambda data, method: _cell(_difference(rows, data, method, reference))
    body = tuple((data, *(cell(data, method) for method in others)) for data in sets)
    return Table(f"NLL less that of {reference}, split by split; negative is better", ("data", *others), body)


@styled
def plot_differences(rows: Rows, reference: str, sets: Sequence[str]) -> Figure:
    """A panel for each data set: NLL less that of the reference, with two standard errors, one line a method."""
    others = [method for method in _methods(rows) if method != reference]
    figure, panels = canvas(len(sets), width=max(2.7, 5.4 / len(sets)), height=0.5 * len(others) + 1.4, share_y=True)
    for axis, data in zip(panels, sets, strict=True):
        axis.axvline(0, color=MUTED, ls="--", lw=1.2)
        for i, method in enumerate(others):
            one = _difference(rows, data, method, reference)
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


def finding(rows: Rows, reference: str) -> str:
    """Of each method, on how many sets it is clearly better and clearly worse than the reference."""
    sets, others = data_names(rows), [method for method in _methods(rows) if method != reference]
    if not others:
        return f"{reference} was run alone."
    clauses = []
    for method in others:
        found = [(data, _difference(rows, data, method, reference)) for data in sets]
        known = [(data, one) for data, one in found if one is not None and not math.isnan(one.standard_error)]
        better = [data for data, one in known if one.value < -_CLEAR * one.standard_error]
        worse = [data for data, one in known if one.value > _CLEAR * one.standard_error]
        clauses.append(f"{method} is better than {reference} on {_listed(better)} and worse on {_listed(worse)}")
    return f"In NLL, by more than two standard errors over splits, {'; '.join(clauses)}."


def splits_text(report: Report) -> str:
    """The tables of a report in Markdown."""
    return "\n\n".join(_markdown(table) for table in report.tables) + "\n"


def splits_result(rows: Rows, reference: str) -> dict[str, Any]:
    """Means and differences for JSON, and every trial."""
    sets, methods = data_names(rows), _methods(rows)
    means = {
        data: {
            method: {score: _plain(_mean(_chosen(rows, data, method), score)) for score in SCORES} for method in methods
        }
        for data in sets
    }
    others = [method for method in methods if method != reference]
    differences = {
        data: {method: _plain(_difference(rows, data, method, reference)) for method in others} for data in sets
    }
    trials = [{**row._asdict(), "scores": {n: _number(v) for n, v in row.scores.items()}} for row in rows]
    return {"means": means, "nll_differences": differences, "trials": trials}


def _methods(rows: Rows) -> list[str]:
    return list(dict.fromkeys(row.method for row in rows))


def _chosen(rows: Rows, data: str, method: str) -> list[SplitScores]:
    return [row for row in rows if (row.data, row.method) == (data, method)]


def _mean(rows: Rows, score: str) -> Measured | None:
    return score_over_splits(rows, score) if any(score in row.scores for row in rows) else None


def _difference(rows: Rows, data: str, method: str, reference: str) -> Measured | None:
    ours, theirs = _chosen(rows, data, method), _chosen(rows, data, reference)
    shared = {row.split for row in ours if row.scores} & {row.split for row in theirs if row.scores}
    return difference_over_splits(ours, theirs)[0] if shared else None


def _count(rows: Rows) -> str:
    scored = sum(1 for row in rows if row.scores)
    return str(scored) if scored == len(rows) else f"{scored} of {len(rows)}, {len(rows) - scored} failed"


def _cell(one: Measured | None) -> str:
    if one is None:
        return _NONE
    return shown(one.value) if math.isnan(one.standard_error) else f"{shown(one.value)} ± {one.standard_error:.2g}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _plain(one: Measured | None) -> dict[str, float | None] | None:
    return None if one is None else {name: _number(value) for name, value in one._asdict().items()}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _markdown(table: Table) -> str:
    line = lambda cells: "| " + " | ".join(cells) + " |"
    rule = "|" + "|".join([":--", *["--:"] * (len(table.columns) - 1)]) + "|"
    return "\n".join([f"**{table.title}**", "", line(table.columns), rule, *(line(row) for row in table.rows)])
