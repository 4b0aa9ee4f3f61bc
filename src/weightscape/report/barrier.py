"""Barriers: the loss along paths between two networks."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from weightscape.core.checks import require
from weightscape.geometry.barrier import Barrier
from weightscape.report.style import canvas, colour, shortened, styled


@styled
def plot_barriers(barriers: Mapping[str, Barrier], *, loss_label: str = "loss") -> Figure:
    """One curve for each path, dotted the line between its ends; the highest point above that line is marked."""
    require(bool(barriers), "Barriers must have a path", "none", "Pass at least one, by its name.")
    figure, (axis,) = canvas(width=6.4)
    for i, (name, barrier) in enumerate(barriers.items()):
        times, losses = np.asarray(barrier.times), np.asarray(barrier.losses)
        at = float(barrier.at)
        line = (1 - at) * losses[0] + at * losses[-1]
        label = f"{shortened(name)}: barrier {float(barrier.value):.3g}"
        axis.plot(times, losses, color=colour(i), label=label)
        axis.plot(times[[0, -1]], losses[[0, -1]], ":", color=colour(i), lw=1.0)
        axis.plot([at, at], [line, line + float(barrier.value)], "-o", color=colour(i), lw=1.0, ms=4)
    axis.set(title="along paths between two networks", xlabel="t", ylabel=loss_label)
    axis.legend()
    return figure
