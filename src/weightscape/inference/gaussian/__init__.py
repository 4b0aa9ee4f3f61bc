"""Gaussian approximations over a parameter tree, as one family of covariance structures."""

from weightscape.inference.gaussian.blocks import Blocks
from weightscape.inference.gaussian.covariance import Covariance
from weightscape.inference.gaussian.diagonal import Diagonal
from weightscape.inference.gaussian.divergence import kl_divergence
from weightscape.inference.gaussian.full import Full
from weightscape.inference.gaussian.gaussian import Gaussian
from weightscape.inference.gaussian.kronecker import Kronecker
from weightscape.inference.gaussian.low_rank import LowRank

__all__ = ["Blocks", "Covariance", "Diagonal", "Full", "Gaussian", "Kronecker", "LowRank", "kl_divergence"]
