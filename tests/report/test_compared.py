"""A comparison as a table, in sentences and in pictures, from numbers written by hand."""

import numpy as np
import pytest

from weightscape.evaluate import Compared, CoverageCurve, Measured, Reliability, Scores
from weightscape.report import (
    Bands,
    Cost,
    Entry,
    Measure,
    Reference,
    Scatter,
    brief_table,
    compared_finding,
    compared_table,
    nearness_name,
    plane,
    plot_bands,
    plot_class_maps,
    plot_cost,
    plot_coverages,
    plot_reliabilities,
    rhat_note,
)


def scored(accuracy, nll, near=None, behind=None):
    scores = Scores({"accuracy": accuracy, "nll": nll, "brier": 0.1}, {"accuracy": 0.012, "nll": 0.05, "brier": 0.01})
    return Compared(scores, dict(zip(("agreement", "total variation"), near or (), strict=bool(near))), behind)


ENTRIES = {
    "hmc": Entry(scored(0.97, 0.1), 120.0, 64_000.4, 2_400_000),
    "map": Entry(scored(0.9, 0.25, (0.931, 0.0512), Measured(0.15, 0.02)), 4.25, 2000.0, 4_800),
    "vi": Entry(scored(0.96, 0.12, (0.985, 0.0042), Measured(0.02, 0.02)), 12.0, None, 99_000),
    "laplace": Entry(None, notes=("failed: an indefinite | Hessian",)),
}
REFERENCE = Reference("hmc", {"agreement": 0.99, "total variation": 0.003}, 1.01)


def test_the_table():
    table = compared_table("digits", ENTRIES)
    near = ("agreement", "total variation")
    assert table.columns == ("method", "accuracy", "NLL", *near, "seconds", "gradients", "memory", "note")
    assert table.rows == (
        ("hmc", "0.970 ± 0.012", "0.100 ± 0.05", "–", "–", "120.0", "64\u2009000", "2.4 MB", "–"),
        ("map", "0.900 ± 0.012", "0.250 ± 0.05", "0.931", "0.051", "4.2", "2\u2009000", "4.8 kB", "–"),
        ("vi", "0.960 ± 0.012", "0.120 ± 0.05", "0.985", "0.0042", "12.0", "–", "99.0 kB", "–"),
        ("laplace", "–", "–", "–", "–", "–", "–", "–", "failed: an indefinite | Hessian"),
    )


def test_the_table_has_columns_only_for_what_there_is():
    alone = compared_table("", {"hmc": ENTRIES["hmc"]})
    assert alone.columns == ("method", "accuracy", "NLL", "seconds", "gradients", "memory")
    nothing = compared_table("", {"laplace": ENTRIES["laplace"]})
    assert nothing.columns == ("method", "seconds", "gradients", "memory", "note")


def test_the_brief_table():
    table = brief_table("digits", ENTRIES)
    assert table.columns == ("method", "accuracy", "NLL", "agreement", "total variation", "seconds")
    assert table.rows[1] == ("map", "0.900", "0.250", "0.931", "0.051", "4.2")
    assert table.rows[3] == ("laplace", *["–"] * 5)


def test_the_finding_names_the_nearest_the_best_and_the_failed():
    assert compared_finding(ENTRIES, REFERENCE) == (
        "Nearest to hmc is vi, with total variation 0.0042 and the same class for 98 %, in 12.0 seconds against "
        "2.0 minutes; two halves of hmc are 0.003 apart. hmc has the smallest NLL, 0.100 ± 0.05; vi cannot be told "
        "from it. Failed: laplace."
    )


def test_chains_that_do_not_agree_are_no_reference():
    doubtful = compared_finding(ENTRIES, REFERENCE._replace(rhat=1.2))
    assert "The chains of hmc do not agree (R̂ 1.20 in function space): distances to it mean little" in doubtful
    assert "do not agree" not in compared_finding(ENTRIES, REFERENCE._replace(rhat=None))


def test_chains_that_do_not_agree_have_a_note():
    assert rhat_note(1.06) == "chains do not agree: R̂ 1.06" and rhat_note(1.05) == rhat_note(None) == ""


def test_without_a_reference_only_the_best_is_named():
    entries = {"map": Entry(scored(0.9, 0.2), 1.0), "vi": Entry(scored(0.9, 0.5, behind=Measured(0.3, 0.1)), 1.0)}
    assert compared_finding(entries, None) == "map has the smallest NLL, 0.200 ± 0.05, clearly."
    assert nearness_name(entries) is None and nearness_name(ENTRIES) == "total variation"
    assert compared_finding({"laplace": ENTRIES["laplace"]}, None) == "Failed: laplace."


def test_costs_are_drawn_with_names_and_a_level():
    costs = {"map": Cost(0.0, 0.2), "vi": Cost(30.0, 0.1)}
    figure = plot_cost({"W1 to hmc": Measure(costs, 0.05, "two halves"), "W2 to hmc": Measure(costs)})
    axis, other = figure.axes
    assert other.get_ylabel() == "W2 to hmc" and len(other.lines) == 2
    assert axis.get_xscale() == "log" and axis.get_ylabel() == "W1 to hmc"
    assert [text.get_text() for text in axis.texts] == ["map", "vi"]
    assert [line.get_xdata()[0] for line in axis.lines[1:]] == [0.05, 30.0]  # no time at all is a twentieth of a second
    assert axis.lines[0].get_ydata()[0] == 0.05
    with pytest.raises(ValueError, match="must have a method"):
        plot_cost({"W1": Measure({})})


def test_calibration_of_several_methods():
    thin = Reliability(np.array([0.5, 0.9]), np.array([0.4, 0.8]), np.array([9, 50]))
    (axis,) = plot_reliabilities({"hmc": thin, "map": thin._replace(num_points=np.array([10, 50]))}).axes
    drawn = {line.get_label(): np.asarray(line.get_xdata()).tolist() for line in axis.lines}
    assert drawn == {"calibrated": [0, 1], "hmc": [0.9], "map": [0.5, 0.9]}
    (axis,) = plot_reliabilities({"few": thin._replace(num_points=np.array([2, 3]))}).axes
    assert np.asarray(axis.lines[1].get_xdata()).tolist() == [0.9] and axis.get_xlim()[0] == pytest.approx(0.74)
    levels = np.array([0.5, 0.9])
    curve = CoverageCurve(levels, np.array([0.4, 0.7]), levels - 0.1, levels + 0.1)
    (axis,) = plot_coverages({"hmc": curve, "map": curve}).axes
    assert [line.get_label() for line in axis.lines] == ["calibrated", "hmc", "map"]


def test_many_panels_stand_in_rows():
    x = np.linspace(0, 1, 5)
    bands = Bands(x, x, x, x, x - 1, x + 1)
    figure = plot_bands({str(i): bands for i in range(5)}, Scatter(x, x))
    shown = [axis.get_title(loc="left") for axis in figure.axes if axis.axison]
    assert shown == list("01234") and len(figure.axes) == 6
    assert [axis.get_ylabel() for axis in figure.axes[:4]] == ["y", "", "", "y"]
    grid = plane(np.random.default_rng(0).normal(size=(9, 2)))
    table = np.full((len(grid.points), 2), 0.5)
    points = np.zeros((2, 2)), np.array([0, 1])
    maps = plot_class_maps(grid, {"a": table, "b": table}, *points, classes=("no", "yes"), inputs=("u", "v"))
    assert [axis.get_title(loc="left") for axis in maps.axes] == ["a", "b"]
