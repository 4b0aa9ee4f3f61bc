"""One look for every figure: colours that colour-blind readers can tell apart, quiet axes, readable text.

Figures are made with matplotlib's objects alone; nothing touches the state of pyplot. The colours are those of Okabe
and Ito (2008), Color Universal Design. Each figure function runs inside `styled`, so the caller's own settings stay.
"""

from typing import NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure

INK = "#22303c"
MUTED = "#66747f"
GRID = "#e4e8eb"
DATA = "#22303c"
TOTAL = "#56b4e9"
EPISTEMIC = "#0072b2"
ALEATORIC = "#d55e00"
TRUTH = "#009e73"

CYCLE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c6d31", "#5b5b5b")
"""Colours of classes, chains and methods, in order."""

_SETTINGS = {
    "font.family": "DejaVu Sans",  # travels with matplotlib, so every machine draws the same picture
    "font.size": 10.5,
    "text.color": INK,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.xmargin": 0.02,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "lines.linewidth": 1.8,
    "svg.hashsalt": "weightscape",  # the same figure gives the same bytes
    "text.parse_math": False,  # a column called "$a$" is a name, not a formula
}

styled = rc_context(_SETTINGS)  # pyright: ignore[reportArgumentType]  matplotlib checks the names
"""A decorator for functions that make or save figures."""


class Canvas(NamedTuple):
    """A figure and its panels from left to right."""

    figure: Figure
    panels: tuple[Axes, ...]


def canvas(
    num_panels: int = 1, *, width: float = 5.4, height: float = 3.9, share_y: bool = False, columns: int | None = None
) -> Canvas:
    """An empty figure of panels in rows of up to `columns`; `width` and `height` are those of one panel, in inches."""
    rows = -(-num_panels // (columns or num_panels))
    columns = -(-num_panels // rows)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    panels = figure.subplots(rows, columns, sharey=share_y, squeeze=False).ravel()
    for unused in panels[num_panels:]:
        unused.set_axis_off()
    return Canvas(figure, tuple(panels[:num_panels]))


def is_first_column(axis: Axes) -> bool:
    """Whether a panel of a canvas stands at the left end of its row."""
    place = axis.get_subplotspec()
    return place is None or place.is_first_col()


def colour(i: int) -> str:
    """The i-th colour of the cycle."""
    return CYCLE[i % len(CYCLE)]


def fading(name: str) -> LinearSegmentedColormap:
    """A colour map from white to a colour."""
    return LinearSegmentedColormap.from_list(f"white to {name}", ["white", name])


def mix(weights: np.ndarray, colours: list[str]) -> np.ndarray:
    """The average of colours under weights that sum to one on the last axis."""
    return np.clip(weights @ np.array([to_rgb(name) for name in colours]), 0, 1)


def shortened(text: str, most: int = 28) -> str:
    """A label that fits: at most `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"
