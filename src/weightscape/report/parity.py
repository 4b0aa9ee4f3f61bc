"""Predicted against observed: for regressions with many inputs, where no line can be drawn."""

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from weightscape.report.style import ALEATORIC, EPISTEMIC, MUTED, canvas, styled

_MOST_POINTS = 400


@styled
def plot_parity(
    observed: Float[np.ndarray, " point"],
    mean: Float[np.ndarray, " point"],
    lower: Float[np.ndarray, " point"],
    upper: Float[np.ndarray, " point"],
    *,
    target: str = "target",
) -> Figure:
    """Means with 90 % intervals against the observed targets; the intervals that miss are coloured.

    Of more than 400 points, 400 evenly spaced ones are drawn.
    """
    figure, (axis,) = canvas(width=5.6, height=4.6)
    shown = np.unique(np.linspace(0, len(observed) - 1, min(len(observed), _MOST_POINTS)).astype(int))
    caught = (observed >= lower) & (observed <= upper)
    for here, name, label in (
        (caught, EPISTEMIC, "interval holds the target"),
        (~caught, ALEATORIC, "interval misses"),
    ):
        rows = shown[here[shown]]
        if len(rows):
            # Clipped at zero: a quantile may lie beyond the mean where the predictive is skewed.
            reach = np.maximum(np.stack([mean[rows] - lower[rows], upper[rows] - mean[rows]]), 0)
            axis.errorbar(observed[rows], mean[rows], reach, fmt="o", ms=3.5, lw=1, color=name, alpha=0.6, label=label)
    ends = [min(observed.min(), mean.min()), max(observed.max(), mean.max())]
    axis.plot(ends, ends, color=MUTED, lw=1.2, ls="--", zorder=0, label="perfect prediction")
    axis.set_xlabel(f"observed {target}")
    axis.set_ylabel(f"predicted {target}")
    axis.legend(loc="upper left")
    return figure
