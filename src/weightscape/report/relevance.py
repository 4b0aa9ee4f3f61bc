"""Relevance: which inputs matter, read off the scales of an automatic-relevance prior."""

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from weightscape.core.checks import require
from weightscape.report.style import EPISTEMIC, TOTAL, canvas, styled


@styled
def plot_relevance(scales: Float[np.ndarray, "draw input"], names: tuple[str, ...]) -> Figure:
    """The posterior of each input's scale τ_i: its 50 % and 90 % intervals and its median, the largest on top.

    - `scales`: draws of τ, one column for each input; `draws.flat().params.prior` holds them.
    """
    came = f"{len(names)} names for {scales.shape[1]} inputs"
    require(len(names) == scales.shape[1], "Names must be one for each input", came, "Pass `dataset.inputs`.")
    figure, (axes,) = canvas(1, width=6.4, height=0.8 + 0.32 * len(names))
    order, rows = np.argsort(np.median(scales, axis=0)), np.arange(len(names))
    quantiles = np.quantile(scales[:, order], (0.05, 0.25, 0.5, 0.75, 0.95), axis=0)
    axes.hlines(rows, quantiles[0], quantiles[4], color=TOTAL, lw=3, label="90 %")
    axes.hlines(rows, quantiles[1], quantiles[3], color=EPISTEMIC, lw=6, label="50 %")
    axes.plot(quantiles[2], rows, "o", color="white", markeredgecolor=EPISTEMIC, label="median")
    axes.set_yticks(rows, [names[i] for i in order.tolist()])
    axes.set(xlabel="scale τ of the input's weights", title="relevance of each input", xlim=(0, None))
    axes.legend(loc="lower right")
    return figure
