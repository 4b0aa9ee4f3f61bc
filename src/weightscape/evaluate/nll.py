"""The negative log predictive density: how surprised the predictions are by what came.

    NLL = −mean_n log Σ_i w_i p(y_n | f(x_n; θ_i), φ_i)

The average over draws is inside the logarithm. Natural logarithms, in original units: dividing targets by 10 lowers it
by log 10 for each entry of a target. Smaller is better.
"""

import numpy as np
from jaxtyping import ArrayLike

from weightscape.predictive import Predictive


def nll(predictive: Predictive, y: ArrayLike | list) -> float:
    """The negative log predictive density of a point, averaged over points."""
    return -float(np.mean(np.asarray(predictive.log_density(y), np.float64)))
