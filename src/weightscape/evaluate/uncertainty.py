"""How unsure predictions are, as one number for each point; larger is less certain.

classes: entropy H[p̄], least confidence 1 − max_c p̄_c, mutual information H[p̄] − E_θ H[p]
numbers: std, epistemic std

Only their order matters to rankings such as risk–coverage curves and the detection of foreign inputs. Entropy, least
confidence and std hold all uncertainty; mutual information and epistemic std that about the function alone. A vector
target's std is the root mean square over its entries, in original units.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float
from scipy.special import entr

from weightscape.core.checks import require_known, require_type
from weightscape.evaluate.numbers import over_entries
from weightscape.evaluate.probabilities import Probabilities, probability_table
from weightscape.predictive import Predictive

Uncertainty: TypeAlias = Callable[[Any], Float[np.ndarray, " _point"]]
"""A function from predictions, or from their table of probabilities where it needs no more, to a number a point."""


def entropy(p: Probabilities) -> Float[np.ndarray, " point"]:
    """−Σ_c p_c log p_c in nats."""
    return np.sum(entr(probability_table(p)), axis=1)


def least_confidence(p: Probabilities) -> Float[np.ndarray, " point"]:
    """1 − max_c p_c: the probability that the most probable class is wrong."""
    return 1 - probability_table(p).max(axis=1)


def mutual_information(predictive: Predictive) -> Float[np.ndarray, " point"]:
    """How much the draws disagree about the class, in nats."""
    return np.asarray(predictive.mutual_information, np.float64)


def std(predictive: Predictive) -> Float[np.ndarray, " point"]:
    """The spread of a new observation."""
    return np.sqrt(over_entries(np.asarray(predictive.std, np.float64) ** 2))


def epistemic_std(predictive: Predictive) -> Float[np.ndarray, " point"]:
    """The spread of the mean function over draws."""
    return np.sqrt(over_entries(np.asarray(predictive.epistemic_std, np.float64) ** 2))


UNCERTAINTIES: dict[str, Uncertainty] = {
    "entropy": entropy,
    "least_confidence": least_confidence,
    "mutual_information": mutual_information,
    "std": std,
    "epistemic_std": epistemic_std,
}


def chosen_uncertainty(asked: str, by: Uncertainty | str) -> Uncertainty:
    """The function itself, or the one of that name."""
    if isinstance(by, str):
        require_known(asked, by, UNCERTAINTIES)
        return UNCERTAINTIES[by]
    remedy = f"Pass one of {', '.join(sorted(UNCERTAINTIES))}, or a function of predictions."
    require_type(callable(by), f"{asked} must be a function or its name", type(by).__name__, remedy)
    return by
