"""Weights of several sets of draws, leaf by leaf, such as those of chains and those of a flow.

Weights of all units of a leaf are pooled, so that units that change places change nothing.
"""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from weightscape.core.checks import require
from weightscape.core.tree import named_leaves
from weightscape.draws import Draws
from weightscape.report.style import canvas, colour, shortened, styled

_MOST_LEAVES = 6
_MOST_NUMBERS = 200_000
_BINS = 50


@styled
def plot_weights_beside(named: Mapping[str, Draws]) -> Figure:
    """One panel for each of the first six leaves: the first draws filled, the others as lines."""
    require(len(named) > 0, "A picture of weights must have draws", "none", "Pass at least one set of draws.")
    leaves = {name: _pooled(draws) for name, draws in named.items()}
    paths = list(next(iter(leaves.values())))[:_MOST_LEAVES]
    figure, axes = canvas(len(paths), width=max(2.5, 9.4 / len(paths)), height=3.2)
    for axis, path in zip(axes, paths, strict=True):
        # The middle 99.8 %: a heavy tail would otherwise squash the rest.
        ends = np.quantile(np.concatenate([values[path] for values in leaves.values()]), [0.001, 0.999])
        edges = np.linspace(ends[0], ends[1], _BINS + 1).tolist() if ends[1] > ends[0] else _BINS
        for i, (name, values) in enumerate(leaves.items()):
            filled, strength = ("stepfilled", 0.45) if i == 0 else ("step", 1.0)
            label = shortened(name)
            axis.hist(
                values[path], edges, density=True, histtype=filled, alpha=strength, lw=1.6, color=colour(i), label=label
            )
        axis.set_title(shortened(path, 20))
        axis.set_yticks([])
        axis.set_xlabel("weight")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _pooled(draws: Draws) -> dict[str, np.ndarray]:
    """The numbers of each leaf on one axis, evenly thinned where there are very many."""
    flat = {name: np.asarray(leaf, np.float64).ravel() for name, leaf in named_leaves(draws.params.network).items()}
    return {name: values[:: max(1, len(values) // _MOST_NUMBERS)] for name, values in flat.items()}
