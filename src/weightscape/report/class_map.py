"""The class map: predicted probabilities over a plane of two inputs, coloured by class and faded where unsure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from weightscape.report.style import EPISTEMIC, INK, canvas, colour, fading, is_first_column, mix, shortened, styled

_SIDE = 80
_MARGIN = 0.35
_MOST_COLUMNS = 4


class Plane(NamedTuple):
    """A grid over two inputs: `points` run along the first input fastest; `extent` is left, right, bottom, top."""

    points: Float[np.ndarray, "point 2"]
    extent: tuple[float, float, float, float]


def plane(x: Float[np.ndarray, "point 2"]) -> Plane:
    """A grid that covers the data and a third of their span beyond."""
    low, high = x.min(axis=0), x.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    low, high = low - _MARGIN * span, high + _MARGIN * span
    first, second = (np.linspace(low[i], high[i], _SIDE) for i in range(2))
    grid = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    return Plane(grid, (float(low[0]), float(high[0]), float(low[1]), float(high[1])))


@styled
def plot_class_map(
    grid: Plane,
    probabilities: Float[np.ndarray, "point class"],
    mutual_information: Float[np.ndarray, " point"],
    x: Float[np.ndarray, "row 2"],
    y: Int[np.ndarray, " row"],
    *,
    classes: Sequence[str],
    inputs: Sequence[str],
) -> Figure:
    """Probabilities (left) and mutual information, the part of the doubt that more data would remove (right)."""
    figure, (left, right) = canvas(2, width=5.0, height=4.2, share_y=True)
    _draw_classes(left, grid, probabilities)
    shades = right.imshow(
        _image(mutual_information), extent=grid.extent, origin="lower", aspect="auto", cmap=fading(EPISTEMIC), vmin=0
    )
    figure.colorbar(shades, ax=right, label="nats")
    for axis in (left, right):
        _draw_points(axis, x, y, classes)
        axis.grid(visible=False)
        axis.set_xlabel(shortened(inputs[0]))
    left.set(ylabel=shortened(inputs[1]), title="predicted class")
    right.set_title("epistemic uncertainty")
    left.legend(loc="best", framealpha=0.85, frameon=True)
    return figure


@styled
def plot_class_maps(
    grid: Plane,
    panels: Mapping[str, Float[np.ndarray, "point class"]],
    x: Float[np.ndarray, "row 2"],
    y: Int[np.ndarray, " row"],
    *,
    classes: Sequence[str],
    inputs: Sequence[str],
) -> Figure:
    """One panel of probabilities for each name, up to four side by side."""
    figure, axes = canvas(len(panels), width=3.4, height=3.2, share_y=True, columns=_MOST_COLUMNS)
    for axis, (title, probabilities) in zip(axes, panels.items(), strict=True):
        _draw_classes(axis, grid, probabilities)
        _draw_points(axis, x, y, classes)
        axis.grid(visible=False)
        y_label = shortened(inputs[1]) if is_first_column(axis) else ""
        axis.set(title=title, xlabel=shortened(inputs[0]), ylabel=y_label)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _draw_classes(axis: Axes, grid: Plane, probabilities: Float[np.ndarray, "point class"]) -> None:
    colours = [colour(i) for i in range(probabilities.shape[1])]
    axis.imshow(_image(mix(probabilities, colours)), extent=grid.extent, origin="lower", aspect="auto", alpha=0.75)


def _draw_points(axis: Axes, x: np.ndarray, y: np.ndarray, classes: Sequence[str]) -> None:
    for i, name in enumerate(classes):
        rows = x[y == i]
        axis.scatter(rows[:, 0], rows[:, 1], s=16, color=colour(i), edgecolor=INK, lw=0.5, label=shortened(name))


def _image(values: np.ndarray) -> np.ndarray:
    return values.reshape(_SIDE, _SIDE, *values.shape[1:])
