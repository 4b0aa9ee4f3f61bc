"""Likelihoods: densities of targets given a network's outputs."""

from weightscape.likelihoods.classes import Bernoulli, Categorical
from weightscape.likelihoods.gaussian import Gaussian, HeteroscedasticGaussian
from weightscape.likelihoods.likelihood import (
    NO_OWN,
    ClassificationLikelihood,
    Likelihood,
    Own,
    RegressionLikelihood,
    as_columns,
)
from weightscape.likelihoods.poisson import Poisson
from weightscape.likelihoods.student_t import StudentT

__all__ = [
    "NO_OWN",
    "Bernoulli",
    "Categorical",
    "ClassificationLikelihood",
    "Gaussian",
    "HeteroscedasticGaussian",
    "Likelihood",
    "Own",
    "Poisson",
    "RegressionLikelihood",
    "StudentT",
    "as_columns",
]
