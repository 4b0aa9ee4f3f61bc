"""The Brier score: the squared distance of the probabilities from what came.

    Brier = mean_n Σ_c (p_nc − 1[y_n = c])²

The sum runs over all classes, so the score lies between 0 and 2; for two classes it is twice the score that looks at
one class only. Smaller is better.
"""

import numpy as np
from jaxtyping import ArrayLike

from weightscape.evaluate.probabilities import Probabilities, check_labels, probability_table


def brier(p: Probabilities, y: ArrayLike | list) -> float:
    """The sum of squares over classes, averaged over points."""
    table = probability_table(p)
    came = np.eye(table.shape[1])[check_labels(y, table)]
    return float(np.mean(np.sum((table - came) ** 2, axis=1)))
