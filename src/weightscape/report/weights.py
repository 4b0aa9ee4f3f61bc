"""Weights against their prior: where the data have spoken, the histogram leaves the prior."""

import jax
import numpy as np
from matplotlib.figure import Figure

from weightscape.core import PRNGKey, Tree
from weightscape.core.tree import named_leaves
from weightscape.draws import Draws, draw_weights, systematic
from weightscape.report.style import EPISTEMIC, MUTED, canvas, shortened, styled

_MOST_LEAVES = 6
_MOST_NUMBERS = 200_000


@styled
def plot_weights(key: PRNGKey, draws: Draws) -> Figure:
    """The weights of each leaf over all draws, and draws from the prior; the first six leaves are shown."""
    prior = _prior_draws(key, draws)
    rows = _rows(draws)
    posterior = {name: _numbers(np.asarray(leaf)[rows]) for name, leaf in named_leaves(draws.params.network).items()}
    names = list(posterior)[:_MOST_LEAVES]
    figure, axes = canvas(len(names), width=max(2.5, 9.4 / len(names)), height=3.2)
    for axis, name in zip(axes, names, strict=True):
        # The middle 99.8 %: a heavy tail would otherwise squash the rest.
        ends = np.quantile(np.concatenate([posterior[name], prior[name]]), [0.001, 0.999])
        low, high = float(ends[0]), float(ends[1])
        axis.hist(posterior[name], 50, range=(low, high), density=True, color=EPISTEMIC, alpha=0.55, label="posterior")
        axis.hist(prior[name], 50, range=(low, high), density=True, histtype="step", color=MUTED, lw=1.6, label="prior")
        axis.set_title(shortened(name, 20))
        axis.set_yticks([])
        axis.set_xlabel("weight")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _prior_draws(key: PRNGKey, draws: Draws) -> dict[str, np.ndarray]:
    one: Tree = jax.tree.map(lambda leaf: leaf[0, 0], draws.params.network)
    like = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), one)
    size = max(1, min(200, _MOST_NUMBERS // max(1, max(leaf.size for leaf in jax.tree.leaves(like)))))
    sampled = jax.vmap(lambda key: draws.model.prior.sample(key, like))(jax.random.split(key, size))
    return {name: _numbers(leaf) for name, leaf in named_leaves(sampled).items()}


def _rows(draws: Draws) -> tuple[np.ndarray, ...]:
    """Chains and draws in their order; weighted ones as often as their weights say."""
    flat = np.arange(len(draws))
    if draws.log_weights is not None:
        flat = systematic(0.5, draw_weights(draws).ravel())
    return np.unravel_index(flat, (draws.num_chains, draws.num_draws))


def _numbers(leaf: object) -> np.ndarray:
    """The leaf's numbers on one axis, evenly thinned where there are very many."""
    flat = np.asarray(leaf).ravel()
    return flat[:: max(1, len(flat) // _MOST_NUMBERS)]
