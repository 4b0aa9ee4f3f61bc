"""Networks on their way from the prior to the posterior, drawn as functions at several times of a flow."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from weightscape.core import PRNGKey
from weightscape.draws.function_space import evaluate_functions
from weightscape.flow import Flow
from weightscape.report.flow_route import Route
from weightscape.report.style import DATA, EPISTEMIC, INK, canvas, colour, shortened, styled

TIMES = (0.0, 0.25, 0.5, 0.75, 1.0)
_NUM_NETWORKS = 30
_WINDOW = 0.6


def functions_on_the_way(
    key: PRNGKey, flow: Flow, route: Route, num_networks: int = _NUM_NETWORKS
) -> Float[np.ndarray, "network time point output"]:
    """What some networks say along a route at each of `TIMES`: means of targets, or probabilities of classes."""
    positions = flow.path(key, num_networks, jnp.asarray(TIMES))
    model = flow.header.model
    params = jax.vmap(jax.vmap(lambda position: model.place(position).parameters))(positions)
    probes = jnp.asarray(route.x, flow.header.example.x.dtype)
    return evaluate_functions(flow.header, jax.tree.map(np.asarray, params), probes)


@styled
def plot_path(route: Route, functions: Float[np.ndarray, "network time point output"]) -> Figure:
    """One panel for each time: all networks as thin curves, their mean as a thick one, and the data."""
    figure, axes = canvas(len(TIMES), width=2.4, height=3.4, share_y=True)
    draw = _draw_means if route.classes is None else _draw_probabilities
    for i, axis in enumerate(axes):
        draw(axis, route, functions[:, i])
        axis.set_title(f"t = {TIMES[i]:g}")
        axis.set_xlim(route.at.min(), route.at.max())
    axes[0].set_ylabel("probability" if route.classes is not None else shortened(route.target))
    if route.classes is None:
        low, high = float(route.y.min()), float(route.y.max())
        axes[0].set_ylim(low - _WINDOW * (high - low), high + _WINDOW * (high - low))
    else:
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 4))
    figure.supxlabel(shortened(route.label, 60), fontsize=10.5, color=INK)
    return figure


def _draw_means(axis: Axes, route: Route, functions: Float[np.ndarray, "network point output"]) -> None:
    axis.plot(route.at, functions[:, :, 0].T, color=EPISTEMIC, lw=0.8, alpha=0.4)
    axis.plot(route.at, functions[:, :, 0].mean(axis=0), color=INK, lw=1.8)
    axis.scatter(route.rows, route.y, s=9, color=DATA, alpha=0.7, lw=0, zorder=3)


def _draw_probabilities(axis: Axes, route: Route, functions: Float[np.ndarray, "network point output"]) -> None:
    for i, name in enumerate(route.classes or ()):
        axis.plot(route.at, functions[:, :, i].T, color=colour(i), lw=0.6, alpha=0.25)
        axis.plot(route.at, functions[:, :, i].mean(axis=0), color=colour(i), lw=1.8, label=shortened(name))
        rows = route.rows[route.y == i]
        # Below the curves, a row for each class, so that they do not cover each other.
        axis.plot(rows, np.full(len(rows), -0.04 * (i + 1)), "|", color=colour(i), ms=5, mew=0.8)
