"""The gallery of priors: figures show the numbers they are given, and the numbers obey what the theory says."""

import jax
import numpy as np
import pytest

import weightscape as ws
from weightscape.core import InputTypeError
from weightscape.priors import Laplace, Normal, StudentT
from weightscape.report.page import figure_bytes
from weightscape.report.prior_classes import DrawnClasses, draw_classes, plot_classes
from weightscape.report.prior_functions import DrawnFunctions, draw_functions, largest_share, plot_functions
from weightscape.report.prior_jumps import Jumps, cauchy_share, plot_jumps
from weightscape.report.prior_shrinkage import Sparsity, plot_pull, plot_sparsity, study_pull, study_sparsity
from weightscape.report.prior_width import WidthStudy, plot_width, study_width


def drawn_lines(axis) -> list[np.ndarray]:
    return [np.asarray(line.get_ydata()) for line in axis.lines]


def test_a_row_of_functions_has_the_same_weights():
    x = np.linspace(-1, 1, 5)
    drawn = draw_functions(jax.random.key(0), {"a": Normal()}, ("identity", "relu"), x=x, width=4, num_draws=3)
    assert drawn.outputs["a"]["relu"].shape == (3, 5)
    # Without an activation the network is linear, whatever its weights; with ReLU on the same weights it is not.
    assert np.abs(np.diff(drawn.outputs["a"]["identity"], n=2)).max() < 1e-5
    assert np.abs(np.diff(drawn.outputs["a"]["relu"], n=2)).max() > 1e-2
    again = draw_functions(jax.random.key(0), {"a": Normal()}, ("relu",), x=x, width=4, num_draws=3)
    np.testing.assert_allclose(again.outputs["a"]["relu"], drawn.outputs["a"]["relu"], rtol=1e-5, atol=1e-6)


def test_functions_are_drawn_in_their_panels():
    lines = {row: {"tanh": np.zeros((7, 3)), "relu": np.full((7, 3), 10.0 + i)} for i, row in enumerate("abc")}
    figure = plot_functions(DrawnFunctions(np.array([-1.0, 0.0, 1.0]), lines, {}))
    assert len(figure.axes) == 6 and figure.axes[5].get_xlabel() == "x"
    assert [axis.get_ylabel() for axis in figure.axes[::2]] == ["a", "b", "c"]
    shown = drawn_lines(figure.axes[3])
    assert len(shown) == 4 + 1  # four draws and the zero line
    np.testing.assert_array_equal(shown[0], [11.0, 11.0, 11.0])


def test_the_largest_share():
    np.testing.assert_allclose(largest_share(np.array([[1.0, -1.0], [3.0, 4.0]])), [0.5, 16 / 25])


def test_the_limit_of_the_largest_cauchy_share():
    # The squares of Cauchy variables: 4000 draws of 4000 units.
    shares = largest_share(np.random.default_rng(0).standard_cauchy((4000, 4000)))
    assert abs(shares.mean() - cauchy_share()) < 5 * shares.std() / np.sqrt(4000)


def test_class_panels_mix_colours():
    model = ws.Model(ws.networks.MLP((3,), outputs=2), ws.likelihoods.Categorical(2), Normal(0.01))
    drawn = draw_classes(jax.random.key(0), {"narrow": model}, num_draws=2)
    assert drawn.confidence["narrow"] < 0.51  # weights near zero: no class is preferred
    certain = np.zeros((2, 3600, 2))
    certain[0, :, 0] = certain[1, :, 1] = 1.0
    figure = plot_classes(DrawnClasses(drawn.grid, {"sure": certain}))
    first, second = (np.asarray(axis.images[0].get_array())[0, 0] for axis in figure.axes)
    assert np.abs(first - second).max() > 0.3
    assert DrawnClasses(drawn.grid, {"sure": certain}).confidence == {"sure": 1.0}


def test_classes_of_a_regression_are_refused():
    model = ws.Model(ws.networks.MLP((3,), outputs=1), ws.likelihoods.Gaussian(1.0), Normal())
    with pytest.raises(InputTypeError, match="likelihood over classes, got Gaussian"):
        draw_classes(jax.random.key(0), {"numbers": model})


@pytest.fixture(scope="module")
def width_study() -> WidthStudy:
    return study_width(jax.random.key(0), (2, 8, 32), num_draws=10_000)


def test_networks_follow_the_wide_limit(width_study):
    for name, found in width_study.kurtosis.items():
        # The relative error of a variance estimate is √(κ − 1)/√n, with a kurtosis κ below 40 for these: 6 %.
        np.testing.assert_allclose(found, width_study.expected_kurtosis[name], rtol=0.2)
        np.testing.assert_allclose(width_study.expected_kurtosis[name] * [1, 4, 16], found[0], rtol=0.2)
    # ReLU: 1/H but for the next order, which is small from width 8 on.
    gap = width_study.gap["relu"]
    assert gap[0] > gap[1] > gap[2] and 3 < gap[1] / gap[2] < 5
    for width, values in width_study.outputs.items():
        # In units of the exact standard deviation: E f² = 1, with an error of √(E f⁴ − 1)/√n.
        assert abs(np.mean(values**2) - 1) < 5 * np.sqrt(np.mean(values**4)) / np.sqrt(len(values)), width


def test_width_figure_shows_the_study(width_study):
    figure = plot_width(width_study)
    _, middle, right = figure.axes
    np.testing.assert_array_equal(drawn_lines(middle)[0], width_study.expected_kurtosis["relu"])
    np.testing.assert_array_equal(drawn_lines(middle)[3], width_study.kurtosis["erf"])
    np.testing.assert_array_equal(drawn_lines(right)[1], width_study.gap["erf"])
    assert b"mathdefault" not in figure_bytes(figure, "svg")
    assert middle.yaxis.get_major_formatter()(0.01, 0) == "0.01"


def test_jumps_figure_shows_functions_and_shares():
    functions = {"normal": np.ones((2, 3)), "Cauchy": np.full((2, 3), 7.0)}
    shares = {"normal": np.array([0.5, 0.1]), "Cauchy": np.array([0.7, 0.6])}
    figure = plot_jumps(Jumps(np.array([-1.0, 0.0, 1.0]), functions, np.array([4, 64]), shares))
    assert figure.axes[1].get_title(loc="left") == "Cauchy, H = 64"
    np.testing.assert_array_equal(drawn_lines(figure.axes[1])[0], [7.0, 7.0, 7.0])
    np.testing.assert_array_equal(drawn_lines(figure.axes[2])[1], [0.7, 0.6])
    np.testing.assert_allclose(drawn_lines(figure.axes[2])[2], cauchy_share())


def test_the_pull_is_proportional_constant_or_vanishing():
    pull = study_pull({"normal": Normal(1.0), "laplace": Laplace(0.5), "t": StudentT(3.0)}, reach=20.0)
    taken = {name: pull.y - mean for name, mean in pull.means.items()}
    np.testing.assert_allclose(taken["normal"], pull.y / 2, atol=1e-4)
    np.testing.assert_allclose(taken["laplace"][60:], 2.0, atol=1e-3)
    assert taken["t"].max() > 0.9 and taken["t"][-1] < 0.25
    figure = plot_pull(pull)
    np.testing.assert_array_equal(drawn_lines(figure.axes[1])[2], taken["t"])


def test_the_posterior_of_the_sparse_mode_is_a_density():
    found = study_sparsity(0.8, observed=1.0)
    assert found.mode[np.abs(found.y) <= 1.25].max() == 0.0
    assert abs(np.trapezoid(found.density, found.theta) - 1) < 1e-3
    mean = np.trapezoid(found.theta * found.density, found.theta)
    assert abs(mean - np.interp(1.0, found.y, found.mean)) < 1e-3 and mean > 0.3


def test_sparsity_figure_marks_mode_and_mean():
    line = np.linspace(-1, 1, 5)
    found = Sparsity(line, np.zeros(5), line / 2, 0.5, line, np.full(5, 0.5))
    labels = plot_sparsity(found).axes[1].get_legend_handles_labels()[1]
    assert labels == ["p(θ | y)", "mode 0.00, yet P(θ = 0) = 0", "mean 0.25"]
