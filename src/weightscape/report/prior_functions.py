"""Functions drawn from priors over weights: what a prior says before any data.

The same weights are put through every activation, so a row of the picture differs in the activation alone: ReLU and
the sigmoid turn one prior over weights into two priors over functions.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from weightscape.core import PRNGKey, Tree
from weightscape.likelihoods import Gaussian
from weightscape.networks import MLP
from weightscape.posterior import Model
from weightscape.priors import Prior
from weightscape.report.style import MUTED, colour, styled

_MOST_LINES = 4


class DrawnFunctions(NamedTuple):
    """Functions along a line of inputs, by prior and then by activation, and what they owe to a single unit.

    - `largest_share`: for each prior and draw, the largest part that one hidden unit has in Σ_j v_j², the squared
      output weights.
    """

    x: Float[np.ndarray, " point"]
    outputs: dict[str, dict[str, Float[np.ndarray, "draw point"]]]
    largest_share: dict[str, Float[np.ndarray, " draw"]]


def draw_functions(
    key: PRNGKey,
    priors: Mapping[str, Prior],
    activations: Sequence[str],
    *,
    x: Float[np.ndarray, " point"],
    width: int = 50,
    num_draws: int = 200,
) -> DrawnFunctions:
    """Networks of one hidden layer and one input, drawn from each of the named priors."""
    outputs, shares = {}, {}
    for i, (name, prior) in enumerate(priors.items()):
        network = MLP((width,), activations[0], outputs=1)
        model = Model(network, Gaussian(1.0), prior)
        drawn = model.sample_prior(jax.random.fold_in(key, i), jnp.asarray(x[:, None], float), num_draws)
        weights = drawn.parameters.network
        outputs[name] = {choice: apply_each(MLP((width,), choice, outputs=1), weights, x) for choice in activations}
        shares[name] = largest_share(np.asarray(weights["layer1"]["weight"])[:, :, 0])
    return DrawnFunctions(x, outputs, shares)


def apply_each(network: MLP, weights: Tree, x: Float[np.ndarray, " point"]) -> Float[np.ndarray, "draw point"]:
    """The output of every network along a line of inputs."""
    points = jnp.asarray(x[:, None], float)
    return np.asarray(jax.vmap(lambda params: network.apply(params, points)[:, 0])(weights))


def largest_share(contributions: Float[np.ndarray, "draw unit"]) -> Float[np.ndarray, " draw"]:
    """max_j c_j² / Σ_j c_j²: near 1/H where no unit matters, near 1 where one does all the work."""
    squares = np.asarray(contributions, float) ** 2
    return squares.max(axis=1) / squares.sum(axis=1)


def draw_lines(axis: Axes, x: Float[np.ndarray, " point"], lines: Float[np.ndarray, "draw point"]) -> None:
    """Functions in one panel; its range is symmetric about zero, and a draw that towers above the others leaves it."""
    for i, line in enumerate(lines):
        axis.plot(x, line, color=colour(i), lw=1.0)
    # Heavy tails: the tallest draw may be a hundred times the others.
    reach = 1.7 * float(np.median(np.abs(lines).max(axis=1))) or 1.0
    axis.axhline(0, color=MUTED, lw=0.6)
    axis.set(xlim=(x.min(), x.max()), ylim=(-reach, reach))
    axis.locator_params(axis="y", nbins=3)
    axis.tick_params(labelsize=7.5)
    axis.grid(visible=False)


@styled
def plot_functions(drawn: DrawnFunctions) -> Figure:
    """A row of panels for each prior, a column for each activation; four draws, and a range for each panel."""
    rows, columns = list(drawn.outputs), list(next(iter(drawn.outputs.values())))
    figure = Figure(figsize=(1.6 * len(columns), 0.88 * len(rows) + 0.4), layout="constrained")
    axes = figure.subplots(len(rows), len(columns), sharex=True, squeeze=False)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            draw_lines(axes[i, j], drawn.x, drawn.outputs[row][column][:_MOST_LINES])
        axes[i, 0].set_ylabel(row, fontsize=8.5)
    for j, column in enumerate(columns):
        axes[0, j].set_title(column)
        axes[-1, j].set(xlabel="x", xticks=[float(drawn.x.min()), 0.0, float(drawn.x.max())])
    return figure
