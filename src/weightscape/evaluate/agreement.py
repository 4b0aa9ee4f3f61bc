"""How close two sets of class probabilities are, point by point.

    agreement = mean_n 1[argmax p_n = argmax q_n]         total variation = mean_n ½ Σ_c |p_nc − q_nc|

Both lie between 0 and 1. They say how close one posterior's predictions are to another's, not how good either is.
Total variation is small wherever both are certain, so look at it off the data as well.

Reference: Izmailov, Vikram, Hoffman and Wilson, What are Bayesian neural network posteriors really like? (2021).
"""

import numpy as np
from jaxtyping import Float

from weightscape.core.checks import require, shape_of
from weightscape.evaluate.probabilities import Probabilities, probability_table


def agreement(p: Probabilities, q: Probabilities) -> float:
    """The share of points where both have the same most probable class."""
    first, second = _tables(p, q)
    return float(np.mean(np.argmax(first, axis=1) == np.argmax(second, axis=1)))


def total_variation(p: Probabilities, q: Probabilities) -> float:
    """Half the sum over classes of |p − q|, averaged over points."""
    first, second = _tables(p, q)
    return float(np.mean(np.sum(np.abs(first - second), axis=1)) / 2)


def _tables(
    p: Probabilities, q: Probabilities
) -> tuple[Float[np.ndarray, "point class"], Float[np.ndarray, "point class"]]:
    first, second = probability_table(p), probability_table(q)
    came, remedy = f"{shape_of(first)} and {shape_of(second)}", "Predict both at the same inputs."
    require(first.shape == second.shape, "Probabilities that are compared must have the same shape", came, remedy)
    return first, second
