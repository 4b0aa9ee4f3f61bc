"""Figures of barriers and sections show the numbers that they are given."""

import jax.numpy as jnp
import numpy as np
import pytest

from weightscape.core import InputError
from weightscape.geometry.barrier import Barrier
from weightscape.geometry.section import Section
from weightscape.report.barrier import plot_barriers
from weightscape.report.page import figure_bytes
from weightscape.report.section import plot_section

TIMES = jnp.linspace(0.0, 1.0, 5)


def made(height: float) -> Barrier:
    losses = jnp.array([1.0, 1.0, 1.5 + height, 2.0, 2.0])
    return Barrier(jnp.asarray(height), jnp.asarray(0.5), TIMES, losses)


def test_barriers_are_drawn_with_their_values():
    figure = plot_barriers({"linear": made(2.0), "geodesic": made(0.25)}, loss_label="mean NLL")
    axis = figure.axes[0]
    assert axis.get_legend_handles_labels()[1] == ["linear: barrier 2", "geodesic: barrier 0.25"]
    curve, ends, rise = axis.lines[:3]
    np.testing.assert_allclose(curve.get_ydata(), made(2.0).losses)
    np.testing.assert_allclose(ends.get_ydata(), [1.0, 2.0])
    np.testing.assert_allclose(rise.get_xydata(), [[0.5, 1.5], [0.5, 3.5]])
    assert axis.get_ylabel() == "mean NLL"
    assert figure_bytes(figure, "png")


def test_barriers_without_a_path_are_refused():
    with pytest.raises(InputError, match="must have a path"):
        plot_barriers({})


def test_a_section_marks_its_networks():
    u, v = jnp.linspace(-1.0, 3.0, 9), jnp.linspace(-1.0, 2.0, 7)
    losses = u[None] ** 2 + v[:, None] ** 2
    corners = jnp.array([[0.0, 0.0], [2.0, 0.0], [1.0, 1.5]])
    figure = plot_section(Section(u, v, losses, corners), ("$a", "b", "c" * 60))
    axis = figure.axes[0]
    marks = [each for each in axis.collections if len(each.get_offsets()) == 3]
    np.testing.assert_allclose(marks[0].get_offsets(), corners)
    assert [text.get_text()[:2] for text in axis.texts] == ["$a", "b", "cc"]
    # The corner (1, 1.5) has the grid's loss 3.25 next to it; the median of the grid is lower.
    shown = figure.axes[1].get_ylabel()
    assert shown == f"loss, at most {max(float(jnp.median(losses)), 4.0):.3g}"
    assert figure_bytes(figure, "png")


def test_a_flat_section_is_drawn():
    axes = jnp.linspace(0.0, 1.0, 4)
    flat = Section(axes, axes, jnp.ones((4, 4)), jnp.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    assert figure_bytes(plot_section(flat), "png")
