"""How scattered draws lie in weight space, in a few numbers: to compare before and after they are re-based."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from weightscape.core import PRNGKey
from weightscape.core.types import Tree
from weightscape.draws import Draws, draw_weights
from weightscape.geometry import diagnose_weights, moments, unimodality
from weightscape.geometry.unimodality import between_chains
from weightscape.posterior import Posterior
from weightscape.report import Table
from weightscape.report.numbers import percent, shown

_LEAST_DRAWS = 4
_MEANINGS = {
    "mean_squared_distance": "mean squared distance to the reference",
    "total_variance": "total variance of the weights",
    "share_settled": "weights whose R̂ is below 1.01",
    "between_chains": "variance between chains",
    "relative_gap": "midpoint gap; 1 for a Gaussian, negative across modes",
    "share_of_dips": "pairs of draws with a dip half-way",
}
_SHARES = ("share_settled", "between_chains", "share_of_dips")


def measure_weights(key: PRNGKey, draws: Draws, reference: Tree, posterior: Posterior | None) -> dict[str, float]:
    """The numbers that these draws have, by name.

    - `reference`: weights of the network, distances to which are taken.
    - `posterior`: for the midpoint gap, which needs the data; None leaves it out.

    What compares chains needs several, and no importance weights.
    """
    found = {
        "mean_squared_distance": _mean_squared_distance(draws, reference),
        "total_variance": moments(draws).total_variance,
    }
    even = draws.log_weights is None
    if even and draws.num_chains > 1 and draws.num_draws >= _LEAST_DRAWS:
        found |= {"share_settled": diagnose_weights(draws).share_settled, "between_chains": between_chains(draws)}
    if even and posterior is not None and len(draws) >= _LEAST_DRAWS:
        gaps = unimodality(key, draws, posterior.log_density)
        found |= {"relative_gap": gaps.relative_gap, "share_of_dips": gaps.share_of_dips}
    return found


def measure_table(title: str, before: Mapping[str, float], after: Mapping[str, float]) -> Table:
    """Both side by side, one row for each number."""
    rows = tuple((_MEANINGS[name], _cell(name, before[name]), _cell(name, after[name])) for name in before)
    return Table(title, ("", "before", "after"), rows)


def _mean_squared_distance(draws: Draws, reference: Tree) -> float:
    """E ‖θ − reference‖² over the network's weights."""
    weights = draw_weights(draws)

    def summed(leaf: Any, to: np.ndarray) -> float:
        squares = (np.asarray(leaf, np.float64) - to[None, None]) ** 2
        return float(np.sum(weights * squares.reshape(*weights.shape, -1).sum(axis=-1)))

    return sum(jax.tree.leaves(jax.tree.map(summed, draws.params.network, reference)))


def _cell(name: str, value: float) -> str:
    return percent(value) if name in _SHARES and np.isfinite(value) else shown(value)
