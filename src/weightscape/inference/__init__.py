"""Inference methods: each approximates a posterior."""

from weightscape.inference.mcmc import (
    HMC,
    MALA,
    MCLMC,
    NUTS,
    DiagonalMass,
    Flip,
    LowRankMass,
    MetropolisHastings,
    ParallelTempering,
    RandomWalk,
    UnitMass,
    ladder_evidence,
)
from weightscape.inference.method import Method
from weightscape.inference.methods import METHODS, method_class
from weightscape.inference.point import MAP, DeepEnsemble
from weightscape.inference.restarts import Afresh, Nearby
from weightscape.inference.sgmcmc import (
    SGHMC,
    SGLD,
    SGNHT,
    ULA,
    Constant,
    Cyclical,
    HalfBatchNoise,
    Identity,
    KnownNoise,
    PolynomialDecay,
    RMSprop,
    WarmRestarts,
)
from weightscape.inference.starts import FromNetwork, FromPrior

__all__ = [
    "HMC",
    "MALA",
    "MAP",
    "MCLMC",
    "METHODS",
    "NUTS",
    "SGHMC",
    "SGLD",
    "SGNHT",
    "ULA",
    "Afresh",
    "Constant",
    "Cyclical",
    "DeepEnsemble",
    "DiagonalMass",
    "Flip",
    "FromNetwork",
    "FromPrior",
    "HalfBatchNoise",
    "Identity",
    "KnownNoise",
    "LowRankMass",
    "Method",
    "MetropolisHastings",
    "Nearby",
    "ParallelTempering",
    "PolynomialDecay",
    "RMSprop",
    "RandomWalk",
    "UnitMass",
    "WarmRestarts",
    "ladder_evidence",
    "method_class",
]
