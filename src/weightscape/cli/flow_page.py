"""What `weightscape flow` says: tables, a finding, pictures, and numbers for `result.json`."""

import math
from typing import Any, NamedTuple

import jax

from weightscape.cli.finish import finite, plain_scores
from weightscape.cli.flow_correction import Corrected
from weightscape.cli.flow_measure import Measured, as_json, halves, nearness
from weightscape.cli.flow_pictures import evidence_picture, flow_pictures
from weightscape.cli.opened_run import OpenedRun
from weightscape.core import InputError, PRNGKey, Silent
from weightscape.draws import Draws
from weightscape.evaluate import scores
from weightscape.inference import Approximation, Laplace, LogEvidence
from weightscape.posterior import Posterior
from weightscape.predictive import predict
from weightscape.report import Report, Table
from weightscape.report.describe import described
from weightscape.report.numbers import duration, score_name, shown
from weightscape.symmetry import discover

_WANTED = {"regression": ("rmse", "nll"), "classification": ("accuracy", "nll")}
_MOST_WEIGHTS = 1500
"""Beyond it the full curvature of Laplace's evidence is not quick."""

_ENOUGH = 0.01


class FlowPage(NamedTuple):
    """All that the page is made of.

    - `key`: of the pictures.  `evidences`: other values of log p(D) by name, perhaps none.
    """

    key: PRNGKey
    opened: OpenedRun
    measured: Measured
    corrected: Corrected | None
    evidences: dict[str, LogEvidence]


def laplace_evidences(key: PRNGKey, posterior: Posterior) -> dict[str, LogEvidence]:
    """Laplace's evidence of one mode, and of it with all its equivalents; none where that is not quick."""
    like = posterior.model.parameters_like(posterior.x[:1])
    if sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(like)) > _MOST_WEIGHTS:
        return {}
    try:
        found = Laplace().run(key, posterior, progress=Silent())
    except InputError:
        return {}  # a comparison that cannot be made is left out; the flow stands without it
    assert isinstance(found, Approximation)
    if found.estimate is None:
        return {}
    one, copies = found.estimate, discover(posterior).log_order
    several = {"Laplace, with all equivalent modes": LogEvidence(one.value + copies, one.kind, one.standard_error)}
    return {"Laplace, one mode": one, **(several if copies > 0 else {})}


def flow_report(page: FlowPage, settings: dict[str, str]) -> Report:
    """The report of a flow."""
    name, measured, rows = page.opened.record.name, page.measured, _compared(page)
    tables = (measure_table(f"{name}: the flow", measured), _comparison(name, rows))
    named = {_method(page.opened): page.opened.draws, **_drawn(page)}
    pictures = (*flow_pictures(page.key, measured, named, page.opened.dataset), evidence_picture(_evidences(page)))
    told = {**settings, "method of the run": _method(page.opened), "flow": described(measured.flow.method)}
    corrections = "" if page.corrected is None else f" {page.corrected.told}"
    return Report(f"A flow on {name}", finding(measured, name) + corrections, tables, pictures, told)


def flow_result(page: FlowPage) -> dict[str, Any]:
    """The numbers for `result.json`."""
    others = {name: {"value": each.value, "kind": each.kind} for name, each in page.evidences.items()}
    correction = None if page.corrected is None else {"by": page.corrected.name, **page.corrected.notes}
    compared = {name: finite(numbers) for name, numbers in _compared(page).items()}
    return {**as_json(page.measured), "other_evidences": others, "compared": compared, "correction": correction}


def measure_table(title: str, measured: Measured) -> Table:
    """What is known of a flow, a row for each number."""
    evidence, gap = measured.evidence, measured.gap
    trust = "" if evidence.is_trusted else ", not to be trusted"
    rows = (
        ("efficiency of its weights", f"{evidence.efficiency:.2%}"),
        ("Pareto k of its weights", f"{evidence.pareto_k:.2f}"),
        ("log p(D)", f"{evidence.value:.2f} ± {evidence.standard_error:.2g} nats{trust}"),
        ("J of its paths to those of held-out draws", f"{gap.value:.2f} ± {gap.standard_error:.2g} nats"),
        ("time to draw a network", f"{1e3 * measured.seconds_a_network:.2g} ms"),
        ("time to train", duration(measured.flow.facts.get("seconds", 0.0))),
    )
    return Table(title, ("measure", "value"), rows)


def finding(measured: Measured, name: str) -> str:
    """One sentence on how good the flow is."""
    evidence, gap = measured.evidence, measured.gap
    told = (
        f"A flow learned to draw networks for {name}: J = {gap.value:.2f} ± {gap.standard_error:.2g} nats from the "
        f"posterior, {evidence.efficiency:.1%} of its draws count"
    )
    if evidence.is_trusted:
        return f"{told}, and log p(D) = {evidence.value:.2f} ± {evidence.standard_error:.2g}."
    remedy = "train for longer" if evidence.efficiency < _ENOUGH else "make more draws"
    return f"{told}; its evidence is not to be trusted yet ({remedy}, or anneal)."


def _compared(page: FlowPage) -> dict[str, dict[str, float]]:
    """Scores on the test rows, and the distance to the run's own predictions, of each set of draws."""
    opened, test = page.opened, page.opened.dataset.test
    reference = predict(opened.draws, test.x)
    wanted = _WANTED[opened.dataset.task]
    chosen = lambda predictive: {name: plain_scores(scores(predictive, test.y))[name] for name in wanted}
    rows = {_method(opened): chosen(reference), "one half of it": halves(opened.draws, opened.dataset)}
    for name, draws in _drawn(page).items():
        predictive = predict(draws, test.x)
        rows[name] = {**chosen(predictive), **nearness(predictive, reference)}
    return rows


def _drawn(page: FlowPage) -> dict[str, Draws]:
    """The flow's draws, and what they were corrected to."""
    corrected = None if page.corrected is None else page.corrected.draws
    return {"flow": page.measured.draws, **({} if corrected is None else {"flow, corrected": corrected})}


def _comparison(name: str, rows: dict[str, dict[str, float]]) -> Table:
    columns = tuple(rows["flow"])
    cells = tuple((row, *(shown(found[c]) if c in found else "–" for c in columns)) for row, found in rows.items())
    titles = tuple(score_name(column) for column in columns)
    return Table(f"{name}: scores on the test rows, and distance to the run", ("draws", *titles), cells)


def _evidences(page: FlowPage) -> dict[str, LogEvidence]:
    found = page.measured.evidence
    name = "flow" if found.is_trusted else "flow, not to be trusted"
    named = {name: LogEvidence(found.value, "weighed", found.standard_error)}
    if page.corrected is not None and "log_evidence" in page.corrected.notes:
        value = page.corrected.notes["log_evidence"]
        named["flow, annealed"] = LogEvidence(value["value"], "annealed", value["standard_error"] or 0.0)
    return {**named, **page.evidences}


def _method(opened: OpenedRun) -> str:
    return str(opened.draws.facts.get("method", "the run"))
