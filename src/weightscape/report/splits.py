"""Methods on the splits of data sets: tables of scores, the page, and numbers for JSON."""

import math
from collections.abc import Mapping
from typing import Any

from weightscape.evaluate.resampling import Measured
from weightscape.evaluate.splits import SplitDifference, over_splits, score_over_splits
from weightscape.report.numbers import counted, score_name, shown
from weightscape.report.report import Picture, Report, Table
from weightscape.report.split_differences import (
    Rows,
    data_names,
    difference,
    difference_finding,
    difference_table,
    method_names,
    plot_differences,
    rows_of,
)

SCORES = ("rmse", "nll", "coverage_90")
_MOST_PANELS = 5


def report_splits(rows: Rows, reference: str, settings: Mapping[str, str]) -> Report:
    """A page: a table for each data set, the differences to the reference, and their picture."""
    sets, methods = data_names(rows), method_names(rows)
    tables = [split_score_table(rows, data) for data in sets]
    failures = {f"{row.data} {row.split} {row.method}": f"failed: {row.failure}" for row in rows if row.failure}
    told, title = {**settings, **failures}, f"{counted(len(methods), 'method')} on {counted(len(sets), 'data set')}"
    if len(methods) == 1:
        return Report(title, difference_finding(rows, reference), tuple(tables), (), told)
    tables.append(difference_table(rows, reference))
    return Report(title, difference_finding(rows, reference), tuple(tables), _pictures(rows, reference), told)


def split_score_table(rows: Rows, data: str) -> Table:
    """Mean ± standard error over splits of each score, one row for each method."""
    mine = [row for row in rows if row.data == data]
    columns = ("method", "splits", *(score_name(score) for score in SCORES), "seconds")
    body = []
    for method in method_names(mine):
        found = rows_of(mine, data, method)
        seconds = f"{over_splits([row.seconds for row in found]).value:.1f}"
        body.append((method, _count(found), *(_cell(_mean(found, score)) for score in SCORES), seconds))
    title = f"{data}: mean ± standard error over splits, in original units; LPPD a row is minus the NLL"
    return Table(title, columns, tuple(body))


def splits_text(report: Report) -> str:
    """The tables of a report in Markdown."""
    return "\n\n".join(_markdown(table) for table in report.tables) + "\n"


def splits_result(rows: Rows, reference: str) -> dict[str, Any]:
    """Means and differences for JSON, and every trial."""
    sets, methods = data_names(rows), method_names(rows)
    mean = lambda data, method: {score: _plain(_mean(rows_of(rows, data, method), score)) for score in SCORES}
    means = {data: {method: mean(data, method) for method in methods} for data in sets}
    others = [method for method in methods if method != reference]
    behind = lambda data: {method: _plain(difference(rows, data, method, reference)) for method in others}
    differences = {data: behind(data) for data in sets}
    trials = [{**row._asdict(), "scores": {n: _number(v) for n, v in row.scores.items()}} for row in rows]
    return {"means": means, "nll_differences": differences, "trials": trials}


def _pictures(rows: Rows, reference: str) -> tuple[Picture, ...]:
    caption = (
        f"NLL less that of {reference} on the same splits, in nats a row: left of the line is better. Bars are two "
        "standard errors over splits."
    )
    sets = data_names(rows)
    groups = [sets[i : i + _MOST_PANELS] for i in range(0, len(sets), _MOST_PANELS)]
    drawn = [plot_differences(rows, reference, group) for group in groups]
    return tuple(Picture(f"differences-{i + 1}", "Differences in NLL", caption, one) for i, one in enumerate(drawn))


def _mean(rows: Rows, score: str) -> Measured | None:
    return score_over_splits(rows, score) if any(score in row.scores for row in rows) else None


def _count(rows: Rows) -> str:
    scored = sum(1 for row in rows if row.scores)
    return str(scored) if scored == len(rows) else f"{scored} of {len(rows)}, {len(rows) - scored} failed"


def _cell(one: Measured | None) -> str:
    if one is None:
        return "–"
    return shown(one.value) if math.isnan(one.standard_error) else f"{shown(one.value)} ± {one.standard_error:.2g}"


def _plain(one: Measured | SplitDifference | None) -> dict[str, float | int | None] | None:
    return None if one is None else {name: _number(value) for name, value in one._asdict().items()}


def _number(value: float | int) -> float | int | None:
    return value if math.isfinite(value) else None


def _markdown(table: Table) -> str:
    line = lambda cells: "| " + " | ".join(cells) + " |"
    rule = "|" + "|".join([":--", *["--:"] * (len(table.columns) - 1)]) + "|"
    return "\n".join([f"**{table.title}**", "", line(table.columns), rule, *(line(row) for row in table.rows)])
