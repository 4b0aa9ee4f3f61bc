"""Which model a method would choose: by what it has, of what can be trusted, and by how much."""

import math

import pytest

from weightscape.evaluate import EvidenceRow
from weightscape.evaluate.evidence_choice import preferences
from weightscape.inference import Evidence, LogEvidence


def own(model, method, value, error=0.0, kind="Laplace"):
    return EvidenceRow(model, method, LogEvidence(value, kind, error), None, None, 0.0)


def weighed(model, method, value, error, pareto_k=0.2, size=400.0):
    return EvidenceRow(model, method, None, Evidence(value, error, size, size / 1000, pareto_k), None, 0.0)


def test_a_verdict_is_the_methods_own_value_and_else_what_draws_weigh_to():
    both = own("a", "m", -3.0, 0.1)._replace(weighed=Evidence(-4.0, 0.2, 900.0, 0.9, 0.1))
    assert both.verdict == (-3.0, 0.1, "Laplace", True)
    assert weighed("a", "m", -4.0, 0.2).verdict == (-4.0, 0.2, "weighed", True)
    assert weighed("a", "m", -4.0, 0.2, pareto_k=0.71).verdict == (-4.0, 0.2, "weighed", False)
    assert weighed("a", "m", -4.0, 0.2, size=49.0).verdict == (-4.0, 0.2, "weighed", False)
    assert both._replace(own=None, weighed=None).verdict is None


def test_models_are_ranked_method_by_method_and_the_lead_has_the_error_of_a_difference():
    rows = [
        own("a", "one", -5.0, 0.3), weighed("a", "two", -7.0, 0.3),
        own("b", "one", -4.0, 0.4), weighed("b", "two", -9.0, 0.1),
        own("c", "one", -6.0, 0.1), weighed("c", "two", -1.0, 0.1, pareto_k=2.0),
    ]  # fmt: skip
    one, two = preferences(rows)
    assert (one.method, two.method) == ("one", "two")
    assert [row.model for row in one.ranked] == ["b", "a", "c"] and one.not_trusted == ()
    assert one.lead == pytest.approx((1.0, 0.5)) and not one.is_clear  # exactly two standard errors
    assert [row.model for row in two.ranked] == ["a", "b"] and [row.model for row in two.not_trusted] == ["c"]
    assert two.lead == pytest.approx((2.0, math.sqrt(0.1))) and two.is_clear


def test_one_model_or_none_has_no_lead():
    (alone,) = preferences([own("a", "one", -5.0)])
    assert alone.lead is None and alone.is_clear
    (nothing,) = preferences([EvidenceRow("a", "chains", None, None, None, 0.0)])
    assert nothing.ranked == () and nothing.not_trusted == () and nothing.lead is None
