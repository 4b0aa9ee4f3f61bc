"""Priors: densities over parameter trees and over scales."""

from weightscape.priors.by_path import ByPath, is_own_coordinate, prior_at
from weightscape.priors.correlated import FullNormal, LowRankNormal, MatrixNormal
from weightscape.priors.discrete import Discrete, binary, signs, ternary
from weightscape.priors.fitted import Fitted
from weightscape.priors.heavy import Laplace, StudentT, augmented_student_t
from weightscape.priors.hierarchical import EVERY_AXIS, Hierarchical, automatic_relevance
from weightscape.priors.horseshoe import Horseshoe
from weightscape.priors.mixture import ScaleMixture
from weightscape.priors.normal import FanInNormal, Normal
from weightscape.priors.prior import NOTHING, Constrained, Coordinates, PositivePrior, Prior, RealPrior
from weightscape.priors.scales import Gamma, HalfCauchy, HalfNormal, InverseGamma, LogNormal, Root
from weightscape.priors.shrinkage import Shrinkage, shrinkage, soft_threshold
from weightscape.priors.wide_limit import excess_kurtosis, wide_kernel

__all__ = [
    "EVERY_AXIS",
    "NOTHING",
    "ByPath",
    "Constrained",
    "Coordinates",
    "Discrete",
    "FanInNormal",
    "Fitted",
    "FullNormal",
    "Gamma",
    "HalfCauchy",
    "HalfNormal",
    "Hierarchical",
    "Horseshoe",
    "InverseGamma",
    "Laplace",
    "LogNormal",
    "LowRankNormal",
    "MatrixNormal",
    "Normal",
    "PositivePrior",
    "Prior",
    "RealPrior",
    "Root",
    "ScaleMixture",
    "Shrinkage",
    "StudentT",
    "augmented_student_t",
    "automatic_relevance",
    "binary",
    "excess_kurtosis",
    "is_own_coordinate",
    "prior_at",
    "shrinkage",
    "signs",
    "soft_threshold",
    "ternary",
    "wide_kernel",
]
