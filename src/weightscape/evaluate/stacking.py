"""Stacking: weights under which a mixture of predictives says the most about points that none of them was fitted to.

    maximise  f(w) = (1/n) Σ_i log Σ_k w_k p_k(y_i)        over  w ≥ 0,  Σ_k w_k = 1

f is concave. The constraint on the sum can be left out for a term − Σ_k w_k, since at a maximum of f(w) − Σ_k w_k over
w ≥ 0 the weights sum to one. That is solved by Newton steps with a barrier μ Σ_k log w_k, whose maximum is at most Kμ
below the best of K models; μ falls until that is 1e-12 nats.

Points must be new to all predictives: held out, or left out one at a time. A predictive that is best nowhere gets
nothing, two that are alike share what one would get, and the mixture may beat the best of them.

Reference: Yao, Vehtari, Simpson and Gelman (2018), Using stacking to average Bayesian predictive distributions,
equation 4; Kim, Carbonetto, Stephens and Anitescu (2020), A fast algorithm for maximum likelihood estimation of mixture
proportions, section 2.1, for the constraint.
"""

import numpy as np
from jaxtyping import ArrayLike, Float

from weightscape.core.checks import require, shape_of

_GAP = 1e-12
"""Nats a point that may be missing to the best weights."""

_LEAST_SHARE = 1e-2
"""Of its value, that a weight keeps in one step."""

_MOST_STEPS = 200


def stacking_weights(log_densities: ArrayLike | list) -> Float[np.ndarray, " model"]:
    """The weights that maximise the mean log density of the mixture; they sum to one.

    - `log_densities`: log p_k(y_i), of shape (model, point), of points that no model was fitted to.

    Example:
    >>> stacking_weights([[-1.0, -9.0], [-9.0, -1.0]]).round(3)
    array([0.5, 0.5])
    """
    table = log_density_table("stacking_weights", log_densities)
    densities = np.exp(table - table.max(axis=0))
    weights, barrier = np.full(len(table), 1 / len(table)), 1.0
    while barrier * len(table) > _GAP:
        barrier /= 10
        weights = _centred(weights, densities, barrier)
    return weights / weights.sum()


def log_density_table(caller: str, log_densities: ArrayLike | list) -> Float[np.ndarray, "model point"]:
    """`log_densities` in double precision, checked: a number for each model and point, and no point impossible."""
    table = np.asarray(log_densities, np.float64)
    asked, remedy = f"`log_densities` of {caller} must have shape (model, point)", "Pass one row for each model."
    require(table.ndim == 2 and table.size > 0, asked, shape_of(table), remedy)
    bad = int(np.sum(np.isnan(table) | (table == np.inf)))
    remedy = "Look at the predictions behind them."
    require(bad == 0, f"`log_densities` of {caller} must be numbers below infinity", f"{bad} that are not", remedy)
    nowhere = np.flatnonzero(np.all(np.isneginf(table), axis=0)).tolist()
    asked = f"Every point of {caller} must be possible under some model"
    require(not nowhere, asked, f"none at points {nowhere[:5]}", "Leave these points out, or use wider noise.")
    return table


def _centred(
    weights: Float[np.ndarray, " model"], densities: Float[np.ndarray, "model point"], barrier: float
) -> Float[np.ndarray, " model"]:
    """The weights that maximise f(w) − Σ w + barrier Σ log w, by Newton's method."""
    value = lambda w: np.mean(np.log(w @ densities)) - w.sum() + barrier * np.log(w).sum()
    for _ in range(_MOST_STEPS):
        shares = densities / (weights @ densities)
        gradient = shares.mean(axis=1) - 1 + barrier / weights
        curvature = shares @ shares.T / shares.shape[1] + np.diag(barrier / weights**2)
        step = np.linalg.solve(curvature, gradient)
        gain = gradient @ step
        if gain < barrier * _LEAST_SHARE:
            break
        size = min(1.0, (1 - _LEAST_SHARE) / max(np.max(-step / weights), 1e-300))
        while value(weights + size * step) < value(weights) + 0.25 * size * gain and size * gain > 1e-16:
            size /= 2
        weights = weights + size * step
    return weights
