"""Convergence in pictures: R̂ and effective sample sizes at the probes, and the running LPPD."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from weightscape.draws import Diagnostics, RunningLppd
from weightscape.report.chains import ENOUGH_ESS, GOOD_RHAT, POOR_RHAT
from weightscape.report.style import ALEATORIC, EPISTEMIC, INK, MUTED, TRUTH, canvas, colour, styled

_MOST_CHAINS = 32


@styled
def plot_convergence(diagnostics: Diagnostics) -> Figure:
    """R̂, and bulk and tail effective sample sizes, of every output at every probe, in increasing order."""
    figure, (left, right) = canvas(2, width=4.6, height=3.4)
    rhat = np.sort(diagnostics.functions.rhat[np.isfinite(diagnostics.functions.rhat)])
    _draw_ranked(left, rhat, EPISTEMIC, "R̂")
    left.axhline(GOOD_RHAT, color=TRUTH, lw=1.2, ls="--", label=f"{GOOD_RHAT}: good")
    left.axhline(POOR_RHAT, color=ALEATORIC, lw=1.2, ls="--", label=f"{POOR_RHAT}: poor")
    left.set(ylabel="R̂", title="agreement of the chains", ylim=(0.995, max(1.06, 1.01 * rhat.max(initial=1.0))))
    _draw_ranked(right, np.sort(diagnostics.functions.bulk_ess.ravel()), EPISTEMIC, "bulk")
    _draw_ranked(right, np.sort(diagnostics.functions.tail_ess.ravel()), colour(1), "tail")
    right.axhline(ENOUGH_ESS, color=TRUTH, lw=1.2, ls="--", label="enough")
    right.set(ylabel="effective draws", title="effective sample size", ylim=(0, None))
    for axes in (left, right):
        axes.set_xlabel("probes and outputs, in order")
        axes.legend(loc="best")
    return figure


@styled
def plot_lppd(lppd: RunningLppd) -> Figure:
    """The LPPD of an average point against the number of draws: every chain, and all of them together."""
    figure, (axes,) = canvas(1, width=6.4, height=3.4)
    draws = np.arange(1, len(lppd.pooled) + 1)
    for i, chain in enumerate(lppd.by_chain[:_MOST_CHAINS]):
        axes.plot(draws, chain / lppd.num_points, color=colour(i), lw=0.9, alpha=0.8)
    axes.plot(draws, lppd.pooled / lppd.num_points, color=INK, lw=2.4, label="all chains together")
    axes.plot([], [], color=MUTED, lw=0.9, label="each chain")
    axes.set(xlabel="draws of each chain", ylabel="log density of a test row", title="running LPPD")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")  # the default one writes formulas
    axes.xaxis.set_minor_formatter("")
    axes.legend(loc="lower right")
    return figure


def _draw_ranked(axes: Axes, values: np.ndarray, colour_name: str, label: str) -> None:
    axes.plot(np.arange(1, len(values) + 1), values, "o", ms=3.5, color=colour_name, alpha=0.8, label=label)
