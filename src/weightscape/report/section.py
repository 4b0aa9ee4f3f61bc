"""A section of the loss: contours on the plane through three networks, which are marked."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from weightscape.geometry.section import Section
from weightscape.report.style import EPISTEMIC, INK, MUTED, canvas, fading, shortened, styled

_NUM_LEVELS = 12


@styled
def plot_section(
    section: Section, names: Sequence[str] = ("a", "b", "c"), *, loss_label: str = "loss", most: float | None = None
) -> Figure:
    """Contours of the loss; axes are distances in weight space.

    - `most`: losses above it are shown as equal to it, so that far walls do not hide the valleys; None takes the
      middle one of all losses, or the largest at the three networks if that is more.
    """
    figure, (axis,) = canvas(width=5.8, height=4.6)
    losses = np.asarray(section.losses, np.float64)
    ceiling = _ceiling(section, losses) if most is None else most
    levels = np.linspace(np.nanmin(losses), ceiling, _NUM_LEVELS)
    if not levels[-1] > levels[0]:
        levels = levels[0] + np.linspace(0.0, 1.0, _NUM_LEVELS)
    grid = (np.asarray(section.u), np.asarray(section.v), np.minimum(losses, levels[-1]))
    shades = axis.contourf(*grid, levels=levels, cmap=fading(EPISTEMIC))
    axis.contour(*grid, levels=levels, colors=MUTED, linewidths=0.4)
    figure.colorbar(shades, ax=axis, label=f"{loss_label}, at most {levels[-1]:.3g}")
    _draw_networks(axis, np.asarray(section.corners), names)
    axis.set(title="the plane of three networks", xlabel="distance", ylabel="distance", aspect="equal")
    axis.grid(visible=False)
    return figure


def _draw_networks(axis: Axes, corners: np.ndarray, names: Sequence[str]) -> None:
    axis.scatter(corners[:, 0], corners[:, 1], s=36, color="white", edgecolor=INK, lw=1.4, zorder=3)
    for (u, v), name in zip(corners, names, strict=True):
        axis.annotate(shortened(name), (u, v), xytext=(6, 6), textcoords="offset points", fontweight="bold")


def _ceiling(section: Section, losses: np.ndarray) -> float:
    columns = [int(np.argmin(np.abs(np.asarray(section.u) - u))) for u in np.asarray(section.corners)[:, 0]]
    rows = [int(np.argmin(np.abs(np.asarray(section.v) - v))) for v in np.asarray(section.corners)[:, 1]]
    return float(max(np.nanmedian(losses), *losses[rows, columns]))
