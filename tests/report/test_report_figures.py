"""Figures show the numbers they are given, and leave matplotlib's settings as they were."""

import matplotlib as mpl
import numpy as np
import pytest

from weightscape.core import InputError
from weightscape.evaluate import Reliability
from weightscape.report import (
    Bands,
    Scatter,
    plane,
    plot_bands,
    plot_class_map,
    plot_coverage,
    plot_doubt,
    plot_parity,
    plot_reliability,
    plot_trace,
)
from weightscape.report.calibration import coverage
from weightscape.report.numbers import counted, duration, percent, shown
from weightscape.report.page import figure_bytes

RNG = np.random.default_rng(0)


def line(epistemic: float) -> Bands:
    x = np.linspace(-1.0, 1.0, 11)
    spread = np.full(11, epistemic)
    return Bands(x, x**2, spread, np.full(11, 0.5), x**2 - 1.0, x**2 + 1.0)


def test_bands_are_drawn_apart_and_labelled():
    data = Scatter(RNG.uniform(-1, 1, 20), RNG.uniform(0, 1, 20), np.linspace(-1.0, 1.0, 11) ** 2)
    figure = plot_bands({"one": line(0.1), "two": line(0.3)}, data, x_label="time", y_label="height")
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert [label.split(":")[0] for label in labels] == [
        "total", "epistemic", "aleatoric", "truth", "mean", "training data",
    ]  # fmt: skip
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["one", "two"]
    assert figure.axes[0].get_ylabel() == "height" and figure.axes[1].get_xlabel() == "time"
    epistemic = [axis.collections[1].get_paths()[0].vertices for axis in figure.axes]
    # The band reaches 1.645 standard deviations: 90 % of a normal distribution.
    reach = [vertices[:, 1].max() - 1.0 for vertices in epistemic]
    np.testing.assert_allclose(reach, [0.1645, 0.4935], atol=1e-3)


def test_bands_without_a_panel_are_refused():
    with pytest.raises(InputError, match="must have a panel"):
        plot_bands({}, Scatter(np.zeros(2), np.zeros(2)))


def test_coverage_is_the_share_of_central_intervals():
    pit = np.array([0.04, 0.06, 0.5, 0.94, 0.96])
    np.testing.assert_allclose(coverage(pit, np.array([0.9, 1.0, 0.0])), [0.6, 1.0, 0.2])


def test_parity_colours_what_is_missed():
    observed = np.array([0.0, 1.0, 2.0])
    figure = plot_parity(observed, observed + 0.1, observed - 0.2, observed + np.array([0.3, 0.3, -0.1]))
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert sorted(labels) == ["interval holds the target", "interval misses", "perfect prediction"]


def test_parity_stays_light_for_many_points():
    observed = RNG.standard_normal(5000)
    figure = plot_parity(observed, observed, observed - 1, observed + 1)
    drawn = figure.axes[0].containers[0].lines[0].get_xdata()
    assert len(drawn) == 400


def test_reliability_leaves_out_empty_bins():
    curve = Reliability(np.array([np.nan, 0.7, 0.95]), np.array([np.nan, 0.5, 1.0]), np.array([0, 4, 16]))
    figure = plot_reliability(curve)
    offsets = np.asarray(figure.axes[0].collections[1].get_offsets())
    np.testing.assert_allclose(offsets, [[0.7, 0.5], [0.95, 1.0]])


@pytest.mark.parametrize("shape", [(4, 30), (40, 5), (10, 1), (1, 1)])
def test_trace_takes_chains_and_ensembles(shape):
    assert figure_bytes(plot_trace(RNG.standard_normal(shape)), "png")


def test_doubt_with_nothing_wrong():
    figure = plot_doubt(np.zeros(5), np.zeros(5), np.ones(5, bool))
    assert len(figure.axes[0].patches) == 20
    assert figure_bytes(figure, "svg")


def test_class_map_covers_the_data():
    x, y = RNG.standard_normal((30, 2)), RNG.integers(0, 3, 30)
    grid = plane(x)
    left, right, bottom, top = grid.extent
    assert left < x[:, 0].min() and right > x[:, 0].max() and bottom < x[:, 1].min() and top > x[:, 1].max()
    probabilities = RNG.dirichlet(np.ones(3), len(grid.points))
    names = ("$a$", "<b>", "c" * 80)
    figure = plot_class_map(grid, probabilities, probabilities[:, 0], x, y, classes=names, inputs=("$u", "v" * 90))
    assert figure_bytes(figure, "png")


def test_settings_of_matplotlib_stay():
    before = dict(mpl.rcParams)
    figure_bytes(plot_coverage(RNG.uniform(size=50)), "svg")
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (shown(0.12345), "0.123"),
        (shown(123.456), "123.5"),
        (shown(1e-5), "1e-05"),
        (shown(float("inf")), "inf"),
        (shown(True), "True"),
        (percent(0.999), "more than 99 %"),
        (percent(0.0), "0 %"),
        (percent(0.876), "88 %"),
        (duration(5.04), "5.0 seconds"),
        (duration(150.0), "2.5 minutes"),
        (counted(1, "row"), "1 row"),
        (counted(2, "row"), "2 rows"),
    ],
)
def test_numbers_read_well(text, expected):
    assert text == expected


def test_members_that_found_one_mode_are_drawn():
    """Two neighbouring numbers of single precision, between which twelve bins of that precision do not fit."""
    first = np.float32(-40.0)
    plot_trace(np.array([[first], [np.nextafter(first, np.float32(0))]]))
