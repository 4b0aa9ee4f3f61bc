"""weightscape: Bayesian deep learning in weight space.

A network and data become a posterior over the network's weights; draws from it become predictions with honest
error bars. Start with `Model`, `HMC` and `predict`; the glossary in the documentation defines every term.
"""

from weightscape import data, likelihoods, networks, priors
from weightscape.core import (
    InputError,
    devices,
)
from weightscape.data import Batch, Dataset
from weightscape.draws import (
    Draws,
    diagnose,
    function_outputs,
    running_lppd,
)
from weightscape.evaluate import agreement, scores, total_variation
from weightscape.inference import (
    HMC,
    MALA,
    MAP,
    MCLMC,
    NUTS,
    SGHMC,
    SGLD,
    SGNHT,
    ULA,
    Afresh,
    Cyclical,
    DeepEnsemble,
    DiagonalMass,
    Flip,
    FromNetwork,
    FromPrior,
    HalfBatchNoise,
    LowRankMass,
    MetropolisHastings,
    Nearby,
    ParallelTempering,
    PolynomialDecay,
    RandomWalk,
    RMSprop,
    UnitMass,
    WarmRestarts,
    ladder_evidence,
)
from weightscape.posterior import Model, Parameters, Posterior
from weightscape.predictive import Predictive, predict

__version__ = "0.1.0"

__all__ = [
    "HMC",
    "MALA",
    "MAP",
    "MCLMC",
    "NUTS",
    "SGHMC",
    "SGLD",
    "SGNHT",
    "ULA",
    "Afresh",
    "Batch",
    "Cyclical",
    "Dataset",
    "DeepEnsemble",
    "DiagonalMass",
    "Draws",
    "Flip",
    "FromNetwork",
    "FromPrior",
    "HalfBatchNoise",
    "InputError",
    "LowRankMass",
    "MetropolisHastings",
    "Model",
    "Nearby",
    "ParallelTempering",
    "Parameters",
    "PolynomialDecay",
    "Posterior",
    "Predictive",
    "RMSprop",
    "RandomWalk",
    "UnitMass",
    "WarmRestarts",
    "agreement",
    "data",
    "devices",
    "diagnose",
    "function_outputs",
    "ladder_evidence",
    "likelihoods",
    "networks",
    "predict",
    "priors",
    "running_lppd",
    "scores",
    "total_variation",
]
