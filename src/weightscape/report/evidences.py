"""Evidence against width and prior, in a table and a picture."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from weightscape.evaluate import EvidenceRow
from weightscape.report.numbers import shown
from weightscape.report.report import Table
from weightscape.report.style import MUTED, canvas, colour, styled

_DASHES = ("-", "--", ":", "-.")


class Candidate(NamedTuple):
    """A model of the comparison: its name, its width, and the scale of its prior."""

    name: str
    width: int
    prior_scale: float


def evidence_table(title: str, rows: Sequence[EvidenceRow]) -> Table:
    """One row for each model and method."""
    columns = ("model", "method", "log p(D)", "weighed", "test score", "seconds")
    return Table(title, columns, tuple(_cells(row) for row in rows))


@styled
def plot_evidence(candidates: Sequence[Candidate], rows: Sequence[EvidenceRow]) -> Figure:
    """Left: each method's log p(D) against width. Right: against the score on unseen rows."""
    figure, (left, right) = canvas(2, width=4.6)
    by_name = {candidate.name: candidate for candidate in candidates}
    methods = list(dict.fromkeys(row.method for row in rows))
    scales = sorted({candidate.prior_scale for candidate in candidates})
    for i, method in enumerate(methods):
        own = [(by_name[row.model], row) for row in rows if row.method == method and row.own is not None]
        for j, scale in enumerate(scales):
            label = f"{method}, prior {scale:g}" if len(scales) > 1 else method
            _draw_line(left, [(c, row) for c, row in own if c.prior_scale == scale], colour(i), _DASHES[j % 4], label)
        _draw_scores(right, [row for _, row in own], colour(i), method)
    left.set(title="evidence and width", xlabel="hidden units", ylabel="log p(D) in nats", xscale="log")
    widths = sorted({candidate.width for candidate in candidates})
    left.set_xticks(widths, [str(width) for width in widths])
    left.minorticks_off()
    right.set(title="does it choose well?", xlabel="log p(D) in nats", ylabel="test log density, a row")
    for axis in (left, right):
        axis.legend(fontsize=8)
    return figure


def _draw_line(axis: Axes, pairs: list[tuple[Candidate, EvidenceRow]], ink: str, dashes: str, label: str) -> None:
    if not pairs:
        return
    pairs = sorted(pairs, key=lambda pair: pair[0].width)
    widths = np.array([candidate.width for candidate, _ in pairs])
    values = np.array([row.own.value for _, row in pairs if row.own])
    errors = np.array([row.own.standard_error for _, row in pairs if row.own])
    axis.errorbar(widths, values, 2 * errors, color=ink, ls=dashes, marker="o", ms=4, lw=1.4, label=label)
    trusted = [(c.width, row.weighed) for c, row in pairs if row.weighed and row.weighed.is_trusted]
    for width, weighed in trusted:
        axis.errorbar(width, weighed.value, 2 * weighed.standard_error, color=ink, marker="D", ms=6, mfc="white")


def _draw_scores(axis: Axes, rows: list[EvidenceRow], ink: str, label: str) -> None:
    scored = [(row.own.value, row.test_log_density) for row in rows if row.own and row.test_log_density is not None]
    if scored:
        axis.plot(*zip(*scored, strict=True), "o", color=ink, ms=5, label=label)
    else:
        axis.text(0.5, 0.5, "no test rows", transform=axis.transAxes, color=MUTED, ha="center")


def _cells(row: EvidenceRow) -> tuple[str, ...]:
    own = "–" if row.own is None else _with_error(row.own.value, row.own.standard_error)
    if row.own is not None and row.own.kind == "lower bound":
        own = f"≥ {own}"
    weighed = "–"
    if row.weighed is not None:
        weighed = _with_error(*row.weighed[:2]) if row.weighed.is_trusted else "not trusted"
    score = "–" if row.test_log_density is None else shown(row.test_log_density)
    return (row.model, row.method, own, weighed, score, f"{row.seconds:.1f}")


def _with_error(value: float, error: float) -> str:
    return f"{value:.2f} ± {error:.2g}" if error else f"{value:.2f}"
