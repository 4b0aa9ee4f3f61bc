"""Detection of foreign inputs: are predictions less certain there than on inputs like those of training?

    AUROC = P(u_out > u_in) + ½ P(u_out = u_in)

u_in and u_out are the uncertainties of a point inside and of one outside, drawn at random: 1 where every foreign
point is less certain than every other, ½ where uncertainty tells nothing. Equal uncertainties count half.

By mutual information, or by the epistemic std of a regression, the question is whether the draws know that they do not
know; by entropy an input that is ambiguous, though common, counts as foreign too.
"""

import numpy as np
from jaxtyping import ArrayLike

from weightscape.evaluate.numbers import point_numbers
from weightscape.evaluate.probabilities import Probabilities
from weightscape.evaluate.uncertainty import Uncertainty, chosen_uncertainty
from weightscape.predictive import Predictive


def ood_auroc(inside: Predictive | Probabilities, outside: Predictive | Probabilities, by: Uncertainty | str) -> float:
    """How well an uncertainty tells the points of `outside` from those of `inside`; larger is better.

    - `inside`, `outside`: predictions of the same draws at inputs like those of training, and at foreign ones.
    - `by`: a function from predictions to one number a point, or its name: "entropy", "least_confidence" or
      "mutual_information" for classes, "epistemic_std" or "std" for numbers.

    Example:
    >>> ood_auroc(predict(draws, test.x), predict(draws, foreign.x), by="mutual_information")       # doctest: +SKIP
    """
    uncertainty = chosen_uncertainty("`by` of ood_auroc", by)
    return auroc(uncertainty(inside), uncertainty(outside))


def auroc(below: ArrayLike | list, above: ArrayLike | list) -> float:
    """The probability that a number of `above` is larger than one of `below`, where equal ones count half.

    Example:
    >>> auroc([0.0, 1.0], [1.0, 2.0])
    0.875
    """
    low = np.sort(point_numbers("`below` of auroc", below))
    high = point_numbers("`above` of auroc", above)
    num_smaller, num_at_most = (np.searchsorted(low, high, side=side) for side in ("left", "right"))
    return float(np.mean(num_smaller + num_at_most) / (2 * len(low)))
