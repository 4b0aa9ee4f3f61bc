"""Priors: densities over parameter trees and over scales."""

from weightscape.priors.gamma import Gamma
from weightscape.priors.normal import FanInNormal, Normal
from weightscape.priors.prior import NOTHING, Constrained, Coordinates, PositivePrior, Prior, RealPrior

__all__ = [
    "NOTHING",
    "Constrained",
    "Coordinates",
    "FanInNormal",
    "Gamma",
    "Normal",
    "PositivePrior",
    "Prior",
    "RealPrior",
]
