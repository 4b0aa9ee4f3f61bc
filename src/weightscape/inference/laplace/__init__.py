"""Laplace's approximation, its evidence, and scales tuned by it."""

from weightscape.inference.laplace.curvature import Curvature, EmpiricalFisher, ExactHessian, GaussNewton
from weightscape.inference.laplace.laplace import Laplace
from weightscape.inference.laplace.marginal import LaplaceEvidence
from weightscape.inference.laplace.structures import (
    DiagonalStructure,
    FullStructure,
    KroneckerStructure,
    LayerStructure,
    LowRankStructure,
    Structure,
)
from weightscape.inference.laplace.tuning import EvidenceTuning
from weightscape.inference.laplace.weights import AllWeights, ByPaths, LastLayer, Weights

__all__ = [
    "AllWeights",
    "ByPaths",
    "Curvature",
    "DiagonalStructure",
    "EmpiricalFisher",
    "EvidenceTuning",
    "ExactHessian",
    "FullStructure",
    "GaussNewton",
    "KroneckerStructure",
    "Laplace",
    "LaplaceEvidence",
    "LastLayer",
    "LayerStructure",
    "LowRankStructure",
    "Structure",
    "Weights",
]
