"""Predictive bands over one input: what the network predicts, and how sure it is.

Three standard deviations are told apart: epistemic (the weights are not known), aleatoric (the targets are noisy) and
total, which is what a new target should be compared with. Total variance = epistemic variance + aleatoric variance.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import norm

from weightscape.core.checks import require
from weightscape.predictive import Predictive
from weightscape.report.style import ALEATORIC, DATA, EPISTEMIC, INK, TOTAL, TRUTH, canvas, is_first_column, styled

_LEVEL = 0.9
_MOST_COLUMNS = 4


class Bands(NamedTuple):
    """A predictive along a line of inputs; `lower` and `upper` bound the central 90 % of a new target."""

    x: Float[np.ndarray, " point"]
    mean: Float[np.ndarray, " point"]
    epistemic_std: Float[np.ndarray, " point"]
    aleatoric_std: Float[np.ndarray, " point"]
    lower: Float[np.ndarray, " point"]
    upper: Float[np.ndarray, " point"]


class Scatter(NamedTuple):
    """Data points, and the true function along a line where it is known."""

    x: Float[np.ndarray, " point"]
    y: Float[np.ndarray, " point"]
    truth: Float[np.ndarray, " line"] | None = None


def bands(x: Float[np.ndarray, "point 1"], predictive: Predictive) -> Bands:
    """The bands of a predictive at inputs `x`, which are sorted here."""
    order = np.argsort(x[:, 0])
    lower, upper = predictive.interval(_LEVEL)
    columns = (predictive.mean, predictive.epistemic_std, predictive.aleatoric_std, lower, upper)
    return Bands(np.asarray(x[order, 0], float), *(_column(values)[order] for values in columns))


@styled
def plot_bands(
    panels: Mapping[str, Bands], data: Scatter, *, x_label: str = "x", y_label: str = "y", window: float = 0.6
) -> Figure:
    """One panel for each named predictive, up to four side by side, all on one scale.

    The vertical range shows the data and `window` times their span beyond, so that a band that opens widely does not
    squash everything else.
    """
    require(len(panels) > 0, "A picture of bands must have a panel", "none", "Pass at least one predictive.")
    width = 6.6 if len(panels) == 1 else 4.6
    height = 4.0 if len(panels) == 1 else 3.7
    figure, axes = canvas(len(panels), width=width, height=height, share_y=True, columns=_MOST_COLUMNS)
    for axis, (title, line) in zip(axes, panels.items(), strict=True):
        _draw(axis, line, data)
        axis.set_title(title)
        axis.set_xlabel(x_label)
        axis.set_ylabel(y_label if is_first_column(axis) else "")
    axes[0].set_ylim(*_vertical_range(data.y, window))
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 3 if len(panels) == 1 else 6))
    return figure


def _draw(axis: Axes, line: Bands, data: Scatter) -> None:
    reach = float(norm.ppf(0.5 + _LEVEL / 2))
    epistemic, aleatoric = reach * line.epistemic_std, reach * line.aleatoric_std
    axis.fill_between(line.x, line.lower, line.upper, color=TOTAL, alpha=0.3, lw=0, label="total: 90 % of new targets")
    low, high = line.mean - epistemic, line.mean + epistemic
    axis.fill_between(line.x, low, high, color=EPISTEMIC, alpha=0.45, lw=0, label="epistemic: unsure of the weights")
    for sign in (-1, 1):
        label = "aleatoric: noise alone" if sign > 0 else None
        axis.plot(line.x, line.mean + sign * aleatoric, color=ALEATORIC, lw=1.1, ls=(0, (4, 2)), label=label)
    if data.truth is not None:
        axis.plot(line.x, data.truth, color=TRUTH, lw=1.4, ls=(0, (1, 1.2)), label="truth")
    axis.plot(line.x, line.mean, color=INK, lw=1.8, label="mean")
    axis.scatter(data.x, data.y, s=13, color=DATA, alpha=0.75, lw=0, zorder=3, label="training data")
    axis.set_xlim(line.x.min(), line.x.max())


def _vertical_range(y: np.ndarray, window: float) -> tuple[float, float]:
    low, high = float(y.min()), float(y.max())
    return low - window * (high - low), high + window * (high - low)


def _column(values: object) -> np.ndarray:
    array = np.asarray(values, float)
    return array.reshape(len(array), -1)[:, 0]
