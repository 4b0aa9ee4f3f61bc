"""The noise of the last layer's linear model: as given, as trained, or where the exact evidence is largest.

    z* = argmax log p(y | Φ, σ(z)) + log p(σ(z)) + log |dσ/dz|

the mode over the unconstrained position z of σ, as everywhere, with the weights of the last layer integrated out.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar

from weightscape.core.checks import require
from weightscape.inference.neural_linear.conjugate import Powers, Regression
from weightscape.priors import NOTHING, Coordinates, Prior

_REACH = 6.0
"""How far z is sought from where training left it: a factor of 400 in σ where z = log σ."""


def tuned_noise(
    regression: Regression,
    scales: Float[np.ndarray, "feature output"],
    prior: Prior,
    start: Float[np.ndarray, " scale"],
    powers: Powers,
) -> Float[np.ndarray, " scale"]:
    """σ of largest evidence: one for all outputs, or one for each, as many as there are in `start`."""
    outputs = range(scales.shape[1])
    groups = [list(outputs)] if len(start) == 1 else [[i] for i in outputs]

    def log_evidence(noise: float, group: list[int]) -> float:
        return sum(regression.solve(i, noise, scales[:, i], powers).log_evidence for i in group)

    each = [
        _best_noise(lambda noise, group=group: log_evidence(noise, group), prior, trained, powers.prior)
        for trained, group in zip(start.tolist(), groups, strict=True)
    ]
    return np.asarray(each)


def _best_noise(log_evidence: Callable[[float], float], prior: Prior, start: float, power: float) -> float:
    """One σ, sought around `start`; its prior is raised to `power`."""

    def negative(z: float) -> float:
        placed = prior.constrain(Coordinates(jnp.asarray(z), NOTHING))
        log_prior = power * float(prior.log_density(placed.params)) + float(placed.log_jacobian)
        return -log_evidence(float(placed.params)) - log_prior

    centre = float(prior.coordinates(jnp.asarray(start)).params)
    bounds = (centre - _REACH, centre + _REACH)
    found: Any = minimize_scalar(negative, bounds=bounds, method="bounded", options={"xatol": 1e-9})
    inside = abs(float(found.x) - centre) < 0.99 * _REACH
    remedy = "Train the features longer, or give the noise a narrower prior."
    require(inside, "The noise of largest evidence must be near the trained one", "one far away", remedy)
    return float(prior.constrain(Coordinates(jnp.asarray(found.x), NOTHING)).params)
