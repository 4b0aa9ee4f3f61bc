"""Which weights to keep when a network is pruned: a score of each, larger for those that matter more.

    by standard deviation      −s_j              what the posterior is sure of stays
    by signal to noise         |θ̄_j| / s_j       what is surely not zero stays
    by magnitude               |θ̄_j|             the usual baseline, which asks for no posterior

References: Xiao, Liu & Bamler (2023), figure 5; Blundell, Cornebise, Kavukcuoglu & Wierstra (2015), Weight uncertainty
in neural networks, section 5.1; Graves (2011), Practical variational inference for neural networks.
"""

import abc

import equinox as eqx
import numpy as np
from jaxtyping import Float

from weightscape.core import registered
from weightscape.geometry.weight_moments import Moments


class PruningScore(eqx.Module):
    """How much a weight matters."""

    @abc.abstractmethod
    def score(self, found: Moments) -> Float[np.ndarray, " weight"]:
        """One number for each weight; the smallest are pruned first."""


@registered("geometry.ByStandardDeviation")
class ByStandardDeviation(PruningScore):
    """The weights with the largest posterior standard deviation go first."""

    def score(self, found: Moments) -> Float[np.ndarray, " weight"]:
        return -found.standard_deviation


@registered("geometry.BySignalToNoise")
class BySignalToNoise(PruningScore):
    """The weights whose mean is smallest in standard deviations go first; one that does not vary goes last."""

    def score(self, found: Moments) -> Float[np.ndarray, " weight"]:
        spread, size = found.standard_deviation, np.abs(found.mean)
        known = np.where(size > 0, np.inf, 0.0)  # a weight that is zero in all draws carries no signal
        return np.divide(size, spread, out=known, where=spread > 0)


@registered("geometry.ByMagnitude")
class ByMagnitude(PruningScore):
    """The weights whose mean is smallest go first."""

    def score(self, found: Moments) -> Float[np.ndarray, " weight"]:
        return np.abs(found.mean)
