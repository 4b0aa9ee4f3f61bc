"""How often, and how far, the best guess is off.

accuracy = mean 1[argmax_c p_c = y]         RMSE = √ mean (E[y | x, D] − y)²
"""

import numpy as np
from jaxtyping import ArrayLike

from weightscape.evaluate.probabilities import Probabilities, check_labels, probability_table
from weightscape.predictive import Predictive


def accuracy(p: Probabilities, y: ArrayLike | list) -> float:
    """The share of points whose most probable class is the label; of equal ones the first counts."""
    table = probability_table(p)
    return float(np.mean(np.argmax(table, axis=1) == check_labels(y, table)))


def rmse(predictive: Predictive, y: ArrayLike | list) -> float:
    """The root mean square distance of the mean from y, over points and entries, in original units."""
    predictive.require_task("regression", "rmse", "Use `accuracy`.")
    differences = np.asarray(predictive.mean, np.float64) - np.asarray(predictive.check_targets(y), np.float64)
    return float(np.sqrt(np.mean(differences**2)))
