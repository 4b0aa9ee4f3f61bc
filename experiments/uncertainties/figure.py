"""Few measurements, many measurements, and what happens to the two uncertainties in between."""

from collections.abc import Mapping

import numpy as np
from experiments.uncertainties.models import AT, NOISE, SLOPE, Spread, line, measurements
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import norm

import weightscape as ws
from weightscape.report.prior_width import label_plainly
from weightscape.report.style import ALEATORIC, DATA, EPISTEMIC, INK, TOTAL, TRUTH, styled

_RANGE = np.linspace(-1.5, 15.5, 171)
_REACH = float(norm.ppf(0.95))
_WIDTH_OF_BELL = 2.6


@styled
def draw(
    predictives: Mapping[int, ws.Predictive], spreads: Mapping[int, Spread], widths: Mapping[int, float]
) -> Figure:
    """A panel of bands for each number of measurements of `predictives`, and one of standard deviations at x = 7.

    - `spreads`: what networks say that know the noise.  `widths`: the noise that others have found.
    """
    figure = Figure(figsize=(12.6, 4.6), layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=(1, 1, 0.92))
    for axis, (num_points, predictive) in zip(axes, predictives.items(), strict=False):
        _bands(axis, num_points, predictive)
        _bell(axis, spreads[num_points])
    axes[1].sharey(axes[0])
    axes[1].tick_params(labelleft=False)
    axes[0].set_ylabel("y")
    _growth(axes[2], spreads, widths)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, columnspacing=1.5, handlelength=1.8)
    return figure


def inputs() -> np.ndarray:
    """Where the bands are drawn."""
    return _RANGE[:, None]


def _bands(axis: Axes, num_points: int, predictive: ws.Predictive) -> None:
    mean, epistemic = (np.asarray(values).reshape(-1) for values in (predictive.mean, predictive.epistemic_std))
    lower, upper = (np.asarray(values).reshape(-1) for values in predictive.interval(0.9))
    x, y = measurements(num_points)
    small = num_points <= 100
    axis.fill_between(_RANGE, lower, upper, color=TOTAL, alpha=0.3, lw=0, label="90 % of new y: total")
    edges = mean - _REACH * epistemic, mean + _REACH * epistemic
    axis.fill_between(_RANGE, *edges, color=EPISTEMIC, alpha=0.5, lw=0, label="90 % of the mean: epistemic")
    axis.scatter(
        x[:, 0], y, s=24 if small else 5, color=DATA, alpha=0.9 if small else 0.2, lw=0, zorder=3, label="measurements"
    )
    axis.plot(_RANGE, mean, color=INK, lw=1.6, label="mean of the networks")
    axis.plot(_RANGE, SLOPE * _RANGE, color=TRUTH, lw=1.5, ls=(0, (1, 1.2)), label="truth, y = 3x")
    axis.set(title=f"{num_points:,} measurements", xlabel="x", xlim=(_RANGE[0], _RANGE[-1]), ylim=(-9, 52))


def _bell(axis: Axes, spread: Spread) -> None:
    """The density of a new y at x = 7, lying on its side."""
    total = np.hypot(spread.epistemic, spread.aleatoric)
    heights = spread.mean + total * np.linspace(-3.2, 3.2, 200)
    tops = AT + _WIDTH_OF_BELL * norm.pdf(heights, spread.mean, total) / norm.pdf(0, 0, total)
    axis.fill_betweenx(heights, AT, tops, color=ALEATORIC, alpha=0.35, lw=0, zorder=4)
    axis.plot(tops, heights, color=ALEATORIC, lw=1.6, zorder=5, label="Gaussian around one prediction")
    axis.plot([AT, AT], heights[[0, -1]], color=ALEATORIC, lw=1.0, zorder=5)
    said = f"at x = 7: {spread.mean:.1f}\n± {spread.epistemic:.2f} epistemic\n± {spread.aleatoric:.2f} aleatoric"
    axis.text(0.04, 0.96, said, transform=axis.transAxes, va="top", fontsize=9.5, linespacing=1.5)


def _growth(axis: Axes, spreads: Mapping[int, Spread], widths: Mapping[int, float]) -> None:
    counts = np.array(list(spreads))
    dense = np.unique(np.geomspace(counts[0], counts[-1], 40).astype(int))
    axis.axhline(NOISE, color=ALEATORIC, lw=1.4, label="aleatoric: the noise as it is")
    axis.plot(
        counts,
        list(widths.values()),
        "o",
        mec=ALEATORIC,
        mfc="white",
        ms=6.5,
        mew=1.6,
        label="aleatoric: as a network learns it",
    )
    doubts = [spread.epistemic for spread in spreads.values()]
    axis.plot(counts, doubts, "o", color=EPISTEMIC, ms=6.5, label="epistemic: the network")
    exact = [line(int(n)).epistemic for n in dense]
    axis.plot(dense, exact, color=EPISTEMIC, lw=1.4, label="epistemic: a line, closed form ∝ 1/√n")
    axis.set(title="More data shrink one of them", xlabel="measurements", ylabel="standard deviation at x = 7")
    axis.set(xscale="log", yscale="log", ylim=(0.016, 4))
    axis.legend(loc="lower left", fontsize=9)
    label_plainly(axis, of_x=True, of_y=True)
