"""Inference methods: each approximates a posterior."""

from weightscape.inference.approximation import Approximation
from weightscape.inference.approximation_files import load_approximation
from weightscape.inference.as_draws import as_draws
from weightscape.inference.evidence import Evidence, LogEvidence, importance_evidence
from weightscape.inference.gaussian import (
    Blocks,
    Covariance,
    Diagonal,
    Full,
    Gaussian,
    Kronecker,
    LowRank,
    kl_divergence,
)
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
    "Approximation",
    "Blocks",
    "Constant",
    "Covariance",
    "Cyclical",
    "DeepEnsemble",
    "Diagonal",
    "DiagonalMass",
    "Evidence",
    "Flip",
    "FromNetwork",
    "FromPrior",
    "Full",
    "Gaussian",
    "HalfBatchNoise",
    "Identity",
    "KnownNoise",
    "Kronecker",
    "LogEvidence",
    "LowRank",
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
    "as_draws",
    "importance_evidence",
    "kl_divergence",
    "ladder_evidence",
    "load_approximation",
    "method_class",
]
