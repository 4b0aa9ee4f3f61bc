"""One unit with two incoming weights, on its way through a flow over a population: a curve in the plane."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from weightscape.core.checks import require
from weightscape.report.style import ALEATORIC, EPISTEMIC, GRID, MUTED, canvas, styled


class UnitPaths(NamedTuple):
    """Incoming weights on the way, and those of the population as the flow is shown them."""

    along: Float[np.ndarray, "draw time 2"]
    population: Float[np.ndarray, "network 2"]


@styled
def plot_unit_paths(named: Mapping[str, UnitPaths]) -> Figure:
    """A panel for each flow: starts (open), ways, ends (full), and the population (crosses).

    - `named`: by the name of a geometry. The circle is where incoming weights have norm one.
    """
    require(bool(named), "`named` of plot_unit_paths must hold at least one", 0, "Pass {name: UnitPaths(...)}.")
    figure, panels = canvas(len(named), width=4.0, height=4.0)
    turn = np.linspace(0, 2 * np.pi, 200)
    for axis, (name, (along, population)) in zip(panels, named.items(), strict=True):
        axis.plot(np.cos(turn), np.sin(turn), color=GRID, lw=2, zorder=0)
        axis.plot(*population.T, "x", color=MUTED, ms=4, alpha=0.5, label="population")
        for way in along:
            axis.plot(*way.T, color=EPISTEMIC, lw=0.8, alpha=0.6)
        axis.plot(*along[:, 0].T, "o", color=EPISTEMIC, mfc="white", ms=4, label="start")
        axis.plot(*along[:, -1].T, "o", color=ALEATORIC, ms=4, label="end")
        axis.set(title=name, xlabel="first incoming weight", ylabel="second incoming weight", aspect="equal")
    panels[0].legend(fontsize=8)
    return figure
