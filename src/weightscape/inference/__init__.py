"""Inference methods: each approximates a posterior."""

from weightscape.inference.mcmc import HMC, Flip, MetropolisHastings, RandomWalk
from weightscape.inference.method import Method
from weightscape.inference.methods import METHODS, method_class
from weightscape.inference.point import MAP, DeepEnsemble

__all__ = [
    "HMC",
    "MAP",
    "METHODS",
    "DeepEnsemble",
    "Flip",
    "Method",
    "MetropolisHastings",
    "RandomWalk",
    "method_class",
]
