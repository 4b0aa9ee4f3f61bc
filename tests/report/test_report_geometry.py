"""Figures of weight space show the numbers they are given."""

import numpy as np
import pytest
from tests.geometry.scrambled import known

from weightscape.core import InputError
from weightscape.evaluate.pruning import PruningRow
from weightscape.evaluate.scores import Scores
from weightscape.geometry.weight_diagnostics import marginals
from weightscape.geometry.weight_moments import moments
from weightscape.report.page import figure_bytes
from weightscape.report.pruning import plot_pruning, pruning_table
from weightscape.report.spread import plot_marginals, plot_spread
from weightscape.report.unit_paths import UnitPaths, plot_unit_paths


@pytest.fixture(autouse=True)
def _double(x64):
    """The draws that other tests use."""


ROWS = (
    PruningRow(1.0, 20, Scores({"accuracy": 0.9, "nll": 0.3}), Scores({"accuracy": 0.85, "nll": 0.4})),
    PruningRow(0.05, 1, Scores({"accuracy": 0.4, "nll": 1.3}), Scores({"accuracy": 0.35, "nll": 1.4})),
)


def test_the_spread_of_every_weight_is_counted_once():
    made = known(inferred_noise=True)
    figure = plot_spread({"before": moments(made.scrambled), "after": moments(made.draws)})
    (axes,) = figure.axes
    assert sum(patch.get_height() for patch in axes.containers[0]) == 17
    labels = axes.get_legend_handles_labels()[1]
    median = np.median(moments(made.draws).standard_deviation[:-1])
    assert labels == [labels[0], f"after: median {median:.3g}"] and labels[0].startswith("before: median ")
    assert axes.get_xscale() == "log" and len(figure_bytes(figure, "png")) > 1000
    with pytest.raises(InputError, match="at least one"):
        plot_spread({})


def test_marginals_have_a_line_for_each_chain_before_and_after():
    made, chosen = known(), {"network/layer0/weight": (0, 5)}
    before, after = marginals(made.scrambled, chosen), marginals(made.draws, chosen)
    figure = plot_marginals(before, after)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "before: layer0/weight[0]", "before: layer0/weight[5]", "after: layer0/weight[0]", "after: layer0/weight[5]",
    ]  # fmt: skip
    assert all(len(axes.patches) == 4 for axes in figure.axes)
    assert len(figure_bytes(figure, "png")) > 1000
    with pytest.raises(InputError, match="of the same weights"):
        plot_marginals(before, {})


def test_pruning_is_drawn_and_tabled():
    figure = plot_pruning({"HMC": ROWS, "ensemble": ROWS})
    left, right = figure.axes
    assert (left.get_title(loc="left"), right.get_title(loc="left")) == ("accuracy", "NLL")
    np.testing.assert_array_equal(left.lines[0].get_xydata(), [[100, 0.9], [5, 0.4]])
    np.testing.assert_array_equal(right.lines[3].get_ydata(), [0.4, 1.4])
    assert left.get_legend_handles_labels()[1][1] == "HMC, mean network" and left.get_xlim()[0] > left.get_xlim()[1]
    table = pruning_table("pruned", ROWS)
    assert table.columns == ("kept", "weights", "accuracy, samples", "NLL, samples", "accuracy, mean", "NLL, mean")
    assert table.rows[1] == ("5 %", "1", "0.400", "1.300", "0.350", "1.400")
    with pytest.raises(InputError, match="at least one"):
        plot_pruning({})


def test_units_are_drawn_from_start_to_end_in_a_panel_each():
    along = np.random.default_rng(0).normal(size=(3, 5, 2))
    figure = plot_unit_paths({"one": UnitPaths(along, along[:, 2]), "two": UnitPaths(2 * along, along[:, 0])})
    assert [axis.get_title(loc="left") or axis.get_title() for axis in figure.axes] == ["one", "two"]
    lines = figure.axes[1].get_lines()
    drawn = [np.array(line.get_data()).T for line in lines]
    assert len(drawn) == 1 + 1 + 3 + 2
    np.testing.assert_allclose(np.linalg.norm(drawn[0], axis=1), 1.0)
    np.testing.assert_array_equal(drawn[1], along[:, 0])
    np.testing.assert_array_equal(np.stack(drawn[2:5]), 2 * along)
    np.testing.assert_array_equal(drawn[5], 2 * along[:, 0])
    np.testing.assert_array_equal(drawn[6], 2 * along[:, -1])
    with pytest.raises(InputError, match="at least one"):
        plot_unit_paths({})
