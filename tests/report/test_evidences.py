"""Evidences in a table, a picture and sentences: a method's own values, weighed ones, and those not to be trusted."""

import numpy as np
import pytest

from weightscape.evaluate import EvidenceRow
from weightscape.inference import Evidence, LogEvidence
from weightscape.report import Candidate, evidence_table, plot_evidence
from weightscape.report.evidence_finding import evidence_finding

CANDIDATES = [Candidate("one", 1, 1.0), Candidate("two", 2, 1.0), Candidate("four", 4, 1.0)]
TRUSTED = Evidence(-30.0, 0.1, 300.0, 0.3, 0.4)
DOUBTFUL = Evidence(-20.0, 0.9, 12.0, 0.012, 1.3)


def rows(score=-0.5):
    bound = lambda value, error: LogEvidence(value, "lower bound", error)
    stones = lambda value, error: LogEvidence(value, "stepping stones", error)
    return (
        EvidenceRow("one", "bound", bound(-40.0, 0.2), TRUSTED, score, 1.0),
        EvidenceRow("one", "flow", None, TRUSTED, score, 2.0),
        EvidenceRow("one", "ladder", stones(-30.1, 0.3), None, score, 3.0),
        EvidenceRow("two", "bound", bound(-44.0, 0.2), DOUBTFUL, score, 1.0),
        EvidenceRow("two", "flow", None, TRUSTED._replace(value=-26.0), score, 2.0),
        EvidenceRow("two", "ladder", stones(-29.9, 0.3), None, score, 3.0),
        EvidenceRow("four", "flow", None, DOUBTFUL, score, 2.0),
        EvidenceRow("four", "chains", None, None, score, 2.0),
    )


def test_the_table_says_what_cannot_be_trusted():
    table = evidence_table("", rows())
    assert table.columns[2:5] == ("log p(D)", "weighed", "efficiency")
    assert table.rows[0] == ("one", "bound", "≥ -40.00 ± 0.2", "-30.00 ± 0.1", "30 %", "-0.500", "1.0")
    assert table.rows[2][2:5] == ("-30.10 ± 0.3", "–", "–")
    assert table.rows[3][3:5] == ("not trusted (-20.00)", "1 %")
    assert table.rows[6][2:5] == ("–", "not trusted (-20.00)", "1 %")
    assert table.rows[7][2:5] == ("–", "–", "–")


def test_the_finding_tells_of_every_method_and_of_models_left_out():
    bound, flow, ladder, chains = evidence_finding(rows()).removesuffix(".").split("; ")
    assert bound == "bound, by its lower bound, prefers one by 4.00 ± 0.28 nats"
    left_out = "(1 model left out, whose weights cannot be trusted: four)"
    assert flow == f"flow, by its weights, prefers two by 4.00 ± 0.14 nats {left_out}"
    assert ladder == "ladder cannot tell two from one"
    assert chains == "chains has no evidence"
    assert evidence_finding(rows()[6:7]) == "flow has no value that can be trusted."
    exact = EvidenceRow("one", "exact", LogEvidence(-40.0, "exact"), None, None, 1.0)
    assert evidence_finding([exact]) == "exact prefers one."
    assert evidence_finding([exact, exact._replace(model="two", own=LogEvidence(-39.5, "exact"))]) == (
        "exact prefers two by 0.50 nats."
    )


def marks(axis):
    """(x, y, marker) of all that is drawn there; methods stand aside of each other by less than a tenth."""
    return {(float(x), float(y), line.get_marker()) for line in axis.lines for x, y in line.get_xydata()}


def near_widths(found):
    nearest = lambda x: min((1.0, 2.0, 4.0), key=lambda width: abs(x - width))
    assert all(abs(x / nearest(x) - 1) < 0.1 for x, _, _ in found)
    return {(nearest(x), y, marker) for x, y, marker in found}


def test_the_picture_has_every_verdict_and_crosses_where_it_is_not_trusted():
    left, right = plot_evidence(CANDIDATES, rows()).axes
    assert near_widths(marks(left)) == {
        (1.0, -40.0, "o"), (2.0, -44.0, "o"), (1.0, -30.0, "D"),  # the bound, and what its draws weigh to
        (2.0, -26.0, "D"), (4.0, -20.0, "x"),  # the flow, whose first point lies on that of the bound
        (1.0, -30.1, "o"), (2.0, -29.9, "o"),
    }  # fmt: skip
    assert left.get_legend_handles_labels()[1] == ["bound", "flow", "ladder"]
    flow = next(line for line in left.lines if len(line.get_xydata()) == 2 and line.get_marker() == "D")
    np.testing.assert_array_equal(flow.get_ydata(), [-30, -26])  # joined, without what cannot be trusted
    assert len({x for x, _, _ in marks(left) if x < 1.5}) == 3
    bars = [segment for bars in left.collections for segment in bars.get_segments()]
    assert any(np.allclose(bar[:, 1], [-26.2, -25.8]) for bar in bars)
    assert {(x, m) for x, _, m in marks(right)} == {
        (-40.0, "o"), (-44.0, "o"), (-30.0, "o"), (-26.0, "o"), (-20.0, "x"), (-30.1, "o"), (-29.9, "o"),
    }  # fmt: skip
    assert "flow, not trusted" in right.get_legend_handles_labels()[1]


def test_many_priors_have_their_names_below_the_panels():
    candidates = [Candidate(f"{scale:g}", 2, scale) for scale in (0.5, 1.0, 2.0)]
    exact = [EvidenceRow(each.name, "exact", LogEvidence(-1.0, "exact"), None, None, 1.0) for each in candidates]
    figure = plot_evidence(candidates, [row._replace(method=name) for name in ("a", "b") for row in exact])
    names = [f"{method}, prior {scale}" for method in "ab" for scale in (0.5, 1, 2)]
    assert [text.get_text() for text in figure.legends[0].texts] == names and figure.axes[0].get_legend() is None


@pytest.mark.parametrize("kept", [slice(6, 7), slice(7, 8), slice(0, 3)])
def test_a_picture_without_scores_or_without_any_value_is_drawn(kept):
    left, right = plot_evidence(CANDIDATES, rows(None)[kept]).axes
    assert [text.get_text() for text in right.texts] == ["no test rows"] and not right.lines
    told = left.get_legend_handles_labels()[1]
    assert told == {6: ["flow, not trusted"], 7: [], 0: ["bound", "flow", "ladder"]}[kept.start]
