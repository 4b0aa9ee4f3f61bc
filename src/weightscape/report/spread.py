"""The spread of single weights in pictures: standard deviations and marginals, before and after draws are re-based."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from weightscape.core.checks import require
from weightscape.geometry.weight_moments import Moments
from weightscape.report.style import canvas, colour, shortened, styled

_BINS = 60
_MOST_CHAINS = 8


@styled
def plot_spread(by_name: Mapping[str, Moments]) -> Figure:
    """Histograms of the standard deviations of all weights, one for each name, on a logarithmic axis.

    - `by_name`: such as `{"before": moments(draws), "after": moments(rebase(draws))}`.
    """
    require(bool(by_name), "`by_name` of plot_spread must hold at least one", 0, "Pass {name: moments(draws)}.")
    spreads = {name: found.standard_deviation[found.is_weight & ~found.is_constant] for name, found in by_name.items()}
    everything = np.concatenate(list(spreads.values()))
    require(len(everything) > 0, "Some weights must vary", "none that do", "Pass more than one network.")
    low, high = float(everything.min()), float(everything.max())
    edges = np.geomspace(low / 1.01, high * 1.01, _BINS + 1)
    figure, (axes,) = canvas(1, width=6.0, height=3.6)
    for i, (name, spread) in enumerate(spreads.items()):
        label = f"{name}: median {np.median(spread):.3g}"
        axes.hist(spread, edges.tolist(), color=colour(i), alpha=0.45, label=label)
        axes.hist(spread, edges.tolist(), histtype="step", color=colour(i), lw=1.4)
    axes.set(xscale="log", xlabel="standard deviation of a weight", ylabel="weights", title="spread of the weights")
    axes.xaxis.set_major_formatter("{x:g}")  # the default one writes formulas
    axes.xaxis.set_minor_formatter("{x:g}" if high < 10 * low else "")  # within a decade there may be one tick alone
    axes.legend()
    return figure


@styled
def plot_marginals(
    before: Mapping[str, Float[np.ndarray, "chain draw"]], after: Mapping[str, Float[np.ndarray, "chain draw"]]
) -> Figure:
    """Chosen weights, one panel each: above before and below after draws were re-based, a line for each chain.

    - `before`, `after`: what `marginals` returns, of the same weights.
    """
    came = f"{list(before)} and {list(after)}"
    same = list(before) == list(after) and len(before) > 0
    require(same, "Marginals before and after must be of the same weights", came, "Choose the same weights for both.")
    figure = Figure(figsize=(2.9 * len(before), 4.4), layout="constrained")
    grid = figure.subplots(2, len(before), squeeze=False, sharex="col")
    for row, (title, found) in enumerate((("before", before), ("after", after))):
        for axes, (name, values) in zip(grid[row], found.items(), strict=True):
            ends = np.quantile(np.concatenate([before[name].ravel(), after[name].ravel()]), [0.001, 0.999])
            edges = np.linspace(ends[0], ends[1], _BINS // 2 + 1) if ends[1] > ends[0] else ends[0] + np.array([-1, 1])
            for i, chain in enumerate(values[:_MOST_CHAINS]):
                axes.hist(chain, edges.tolist(), density=True, histtype="step", color=colour(i), lw=1.2)
            axes.set_yticks([])
            axes.set_title(f"{title}: {shortened(name.rpartition('network/')[2], 20)}", fontsize=9.5)
    for axes in grid[1]:
        axes.set_xlabel("weight")
    return figure
