"""The numbers of sequential Monte Carlo: the next power, who is copied, and the error of the estimate.

At a stage from β to β' each of N particles gets the weight W_i ∝ w_i^(β' − β), and Z_β' / Z_β is estimated by the mean
of w_i^(β' − β). β' is as large as it can be while (Σ W)² / (N Σ W²), the stage's efficiency, stays at a wanted share.

The standard error of log Ẑ comes from one run by its genealogy: with R_k the first ancestor of particle k, N of them at
the start, and W̄_k the last stage's weights with mean 1,

    Var(Ẑ) / Z² ≈ (1/N²) Σ_i (Σ_{k: R_k = i} W̄_k − 1)²

Particles of one ancestor share its luck, so the sum over them is what varies independently. It asks for no second run,
as repeats would. With systematic copies, whose numbers are rounded at random, it is a little too large (by up to 1/4
for each stage, beside the 1/share − 1 of the stage's own weights). Where few ancestors count it is too small: those
that would count more were never drawn.

References: Chan & Lai (2013), A general theory of particle filters, equation 2.15; Lee & Whiteley (2018), Variance
estimation in the particle filter.
"""

import numpy as np
from jaxtyping import Float, Int

_NUM_HALVINGS = 60


def next_power(log_weights: Float[np.ndarray, " particle"], power: float, share: float) -> float:
    """The largest power, up to 1, at which a stage from `power` still has the efficiency `share`."""
    if stage_efficiency(log_weights, 1 - power) >= share:
        return 1.0
    lower, upper = 0.0, 1 - power
    for _ in range(_NUM_HALVINGS):
        middle = (lower + upper) / 2
        enough = stage_efficiency(log_weights, middle) >= share
        lower, upper = (middle, upper) if enough else (lower, middle)
    return power + lower


def stage_efficiency(log_weights: Float[np.ndarray, " particle"], step: float) -> float:
    """(Σ W)² / (n Σ W²) of the weights w^step, with n the particles that weigh anything."""
    weights = stage_weights(log_weights, step)
    return float(weights.sum() ** 2 / (np.sum(weights > 0) * np.sum(weights**2)))


def stage_weights(log_weights: Float[np.ndarray, " particle"], step: float) -> Float[np.ndarray, " particle"]:
    """w^step, the largest of them 1."""
    return np.exp(step * (log_weights - log_weights.max()))


def log_mean(log_weights: Float[np.ndarray, " particle"], step: float) -> float:
    """The logarithm of the mean of w^step."""
    return float(step * log_weights.max() + np.log(stage_weights(log_weights, step).mean()))


def relative_error(weights: Float[np.ndarray, " particle"], roots: Int[np.ndarray, " particle"]) -> float:
    """The standard error of log Ẑ.

    - `weights`: those of the last stage, up to a factor.  `roots`: the first ancestor of each particle.
    """
    families = np.bincount(roots, weights / weights.mean(), minlength=len(weights))
    return float(np.sqrt(np.sum((families - 1) ** 2)) / len(weights))
