"""Doubt about classes: entropy, and mutual information, its epistemic part.

    total H(E[p]) = aleatoric E[H(p)] + epistemic I

A useful model is more in doubt where it is wrong.
"""

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from weightscape.report.style import ALEATORIC, EPISTEMIC, canvas, styled


@styled
def plot_doubt(
    entropy: Float[np.ndarray, " point"],
    mutual_information: Float[np.ndarray, " point"],
    is_right: Bool[np.ndarray, " point"],
) -> Figure:
    """Histograms of both over the test rows, apart for right and wrong predictions."""
    figure, (left, right) = canvas(2, width=4.6, height=3.4)
    _draw(left, entropy, is_right)
    left.set(xlabel="entropy (nats)", ylabel="share of rows", title="total doubt")
    _draw(right, mutual_information, is_right)
    right.set(xlabel="mutual information (nats)", title="epistemic part")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _draw(axis: Axes, values: np.ndarray, is_right: np.ndarray) -> None:
    high = max(float(values.max()), 1e-3)
    groups = ((is_right, EPISTEMIC, "right"), (~is_right, ALEATORIC, "wrong"))
    for rows, name, label in groups:
        if rows.any():
            shares = np.full(rows.sum(), 1 / rows.sum())
            described = f"{label} ({rows.sum()} rows)"
            axis.hist(values[rows], 20, range=(0, high), weights=shares, color=name, alpha=0.55, label=described)
