"""Traces: the log density along every chain, to see at a glance whether chains agree and have settled."""

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from weightscape.report.style import CYCLE, EPISTEMIC, canvas, colour, styled

_MOST_CHAINS = 32


@styled
def plot_trace(log_density: Float[np.ndarray, "chain draw"]) -> Figure:
    """log p(D, θ) by chain and its histogram; draws without chains in time (an ensemble) are shown as bars."""
    figure, (left, right) = canvas(2, width=4.6, height=3.4, share_y=log_density.shape[1] > 1)
    if log_density.shape[1] > 1:
        _draw_chains(left, right, log_density[:_MOST_CHAINS])
    else:
        _draw_members(left, right, log_density[:, 0])
    return figure


def _draw_chains(left: Axes, right: Axes, log_density: np.ndarray) -> None:
    low, high = float(log_density.min()), float(log_density.max())
    for i, chain in enumerate(log_density):
        label = f"chain {i}" if len(log_density) <= len(CYCLE) else None
        left.plot(chain, color=colour(i), lw=0.8, alpha=0.85, label=label)
        right.hist(
            chain.astype(np.float64),
            40,
            range=(low, high),
            orientation="horizontal",
            histtype="step",
            color=colour(i),
            lw=1.3,
        )
    left.set(xlabel="draw", ylabel="log density", title="log density along each chain")
    right.set(xlabel="draws", title="its distribution, by chain")
    if len(log_density) <= len(CYCLE):
        left.legend(ncols=2, loc="lower right")


def _draw_members(left: Axes, right: Axes, log_density: np.ndarray) -> None:
    left.plot(log_density, "o", color=EPISTEMIC)
    left.set(xlabel="member", ylabel="log density", title="log density of each member")
    # In single precision members that found one mode can lie too close for twelve bins.
    right.hist(log_density.astype(np.float64), 12, color=EPISTEMIC, alpha=0.8)
    right.set(xlabel="log density", ylabel="members", title="its distribution")
