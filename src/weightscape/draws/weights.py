"""Importance weights of draws, normalised, and copies of draws by their weights."""

import numpy as np
from jaxtyping import Float, Int

from weightscape.core.checks import require
from weightscape.draws.draws import Draws


def draw_weights(draws: Draws) -> Float[np.ndarray, "chain draw"]:
    """w = softmax(log weights) over all draws of all chains, in double precision; 1/n where there are none."""
    require(len(draws) > 0, "`draws` must hold at least one draw", 0, "Pass what `method.run` returns.")
    if draws.log_weights is None:
        return np.full((draws.num_chains, draws.num_draws), 1 / len(draws))
    log_weights = np.asarray(draws.log_weights, np.float64)
    largest = log_weights.max()
    remedy = "Check the densities behind them, or leave these draws out."
    require(bool(np.isfinite(largest)), "`log_weights` of Draws must have a finite maximum", largest, remedy)
    weights = np.exp(log_weights - largest)
    return weights / weights.sum()


def systematic(
    offset: float, weights: Float[np.ndarray, " draw"], count: int | None = None
) -> Int[np.ndarray, " place"]:
    """Whose copy takes each of `count` places, as many as there are weights where None.

    Draw i gets count · w_i / Σ w places, rounded up or down.

    - `offset`: one uniform number, which all places share; 1/2 for copies without chance.
    """
    count = len(weights) if count is None else count
    places = (offset + np.arange(count)) / count
    ends = np.cumsum(weights / weights.sum())
    return np.minimum(np.searchsorted(ends, places, side="right"), np.flatnonzero(weights > 0)[-1])
