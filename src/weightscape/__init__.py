"""weightscape: Bayesian deep learning in weight space.

A network and data become a posterior over the network's weights; draws from it become predictions with honest
error bars. Start with `Model`, `HMC` and `predict`; the glossary in the documentation defines every term.
"""

from weightscape import data, likelihoods, networks, priors
from weightscape.core import devices
from weightscape.data import Batch, Dataset
from weightscape.draws import Draws
from weightscape.evaluate import agreement, scores, total_variation
from weightscape.inference import HMC, MAP, DeepEnsemble, Flip, MetropolisHastings, RandomWalk
from weightscape.posterior import Model, Parameters, Posterior
from weightscape.predictive import Predictive, predict

__version__ = "0.1.0"

__all__ = [
    "HMC",
    "MAP",
    "Batch",
    "Dataset",
    "DeepEnsemble",
    "Draws",
    "Flip",
    "MetropolisHastings",
    "Model",
    "Parameters",
    "Posterior",
    "Predictive",
    "RandomWalk",
    "agreement",
    "data",
    "devices",
    "likelihoods",
    "networks",
    "predict",
    "priors",
    "scores",
    "total_variation",
]
