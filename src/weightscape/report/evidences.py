"""Evidence against width and prior, in a table and a picture."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from weightscape.evaluate import EvidenceRow
from weightscape.inference import Evidence
from weightscape.report.numbers import percent, shown
from weightscape.report.report import Table
from weightscape.report.style import MUTED, canvas, colour, styled

_DASHES = ("-", "--", ":", "-.")
_STEP_ASIDE = 1.03
"""From one method to the next, so that equal values do not hide each other."""

_MOST_INSIDE = 5
"""Lines whose names fit into a panel."""


class Candidate(NamedTuple):
    """A model of the comparison: its name, its width, and the scale of its prior."""

    name: str
    width: float
    prior_scale: float


def evidence_table(title: str, rows: Sequence[EvidenceRow]) -> Table:
    """One row for each model and method."""
    columns = ("model", "method", "log p(D)", "weighed", "efficiency", "test score", "seconds")
    return Table(title, columns, tuple(_cells(row) for row in rows))


@styled
def plot_evidence(candidates: Sequence[Candidate], rows: Sequence[EvidenceRow]) -> Figure:
    """Left: what each method says log p(D) is, against width. Right: against the score on unseen rows.

    Circles are values of a method's own, diamonds what draws weigh to, crosses weights that cannot be trusted. Lines
    join what can be.
    """
    figure, (left, right) = canvas(2, width=4.6)
    by_name = {candidate.name: candidate for candidate in candidates}
    scales = sorted({candidate.prior_scale for candidate in candidates})
    methods = list(dict.fromkeys(row.method for row in rows))
    for i, method in enumerate(methods):
        aside = _STEP_ASIDE ** (i - (len(methods) - 1) / 2)
        placed = {name: c._replace(width=c.width * aside) for name, c in by_name.items()}
        told = [(placed[row.model], row) for row in rows if row.method == method and row.verdict is not None]
        for j, scale in enumerate(scales):
            label = f"{method}, prior {scale:g}" if len(scales) > 1 else method
            _draw_line(left, [(c, row) for c, row in told if c.prior_scale == scale], colour(i), _DASHES[j % 4], label)
        _draw_scores(right, [row for _, row in told], colour(i), method)
    left.set(title="evidence and width", xlabel="hidden units", ylabel="log p(D) in nats", xscale="log")
    widths = sorted({candidate.width for candidate in candidates})
    left.set_xticks(widths, [str(width) for width in widths])
    left.minorticks_off()
    right.set(title="does it choose well?", xlabel="log p(D) in nats", ylabel="test log density, a row")
    if not right.lines:
        right.text(0.5, 0.5, "no test rows", transform=right.transAxes, color=MUTED, ha="center")
    _draw_legends(figure, left, right, len(methods))
    return figure


def _draw_legends(figure: Figure, left: Axes, right: Axes, num_methods: int) -> None:
    """In the panels; that of many lines below them, one row for each prior."""
    if right.lines:
        right.legend(fontsize=8)
    handles, labels = left.get_legend_handles_labels()
    if len(labels) > _MOST_INSIDE:
        figure.legend(handles, labels, loc="outside lower center", ncols=num_methods, fontsize=8)
    elif labels:
        left.legend(fontsize=8)


def _draw_line(axis: Axes, pairs: list[tuple[Candidate, EvidenceRow]], ink: str, dashes: str, label: str) -> None:
    pairs = sorted(pairs, key=lambda pair: pair[0].width)
    verdicts = [(candidate.width, row.verdict) for candidate, row in pairs if row.verdict]
    usable = [(width, verdict) for width, verdict in verdicts if verdict.is_trusted]
    if usable:
        widths, values, errors = (
            np.array(each) for each in zip(*((w, v.value, v.standard_error) for w, v in usable), strict=True)
        )
        marker = "D" if usable[0][1].kind == "weighed" else "o"
        axis.errorbar(widths, values, 2 * errors, color=ink, ls=dashes, marker=marker, ms=4, lw=1.4, label=label)
    for width, verdict in verdicts:
        if not verdict.is_trusted:
            name = None if usable else f"{label}, not trusted"
            axis.plot(width, verdict.value, "x", color=ink, ms=7, label=name)
    for candidate, row in pairs:
        if row.own and row.weighed and row.weighed.is_trusted:
            bar = 2 * row.weighed.standard_error
            axis.errorbar(candidate.width, row.weighed.value, bar, color=ink, marker="D", ms=6, mfc="white")


def _draw_scores(axis: Axes, rows: list[EvidenceRow], ink: str, label: str) -> None:
    scored = [(row.verdict, row.test_log_density) for row in rows if row.verdict and row.test_log_density is not None]
    for is_trusted, marker in ((True, "o"), (False, "x")):
        points = [(verdict.value, score) for verdict, score in scored if verdict.is_trusted == is_trusted]
        if points:
            name = label if is_trusted else f"{label}, not trusted"
            axis.plot(*zip(*points, strict=True), marker, color=ink, ms=5, label=name)


def _cells(row: EvidenceRow) -> tuple[str, ...]:
    own = "–" if row.own is None else _with_error(row.own.value, row.own.standard_error)
    if row.own is not None and row.own.kind == "lower bound":
        own = f"≥ {own}"
    efficiency = "–" if row.weighed is None else percent(row.weighed.efficiency)
    score = "–" if row.test_log_density is None else shown(row.test_log_density)
    return (row.model, row.method, own, _weighed(row.weighed), efficiency, score, f"{row.seconds:.1f}")


def _weighed(weighed: Evidence | None) -> str:
    """The value; one that cannot be trusted has no error and says so."""
    if weighed is None:
        return "–"
    return _with_error(*weighed[:2]) if weighed.is_trusted else f"not trusted ({weighed.value:.2f})"


def _with_error(value: float, error: float) -> str:
    return f"{value:.2f} ± {error:.2g}" if error else f"{value:.2f}"
