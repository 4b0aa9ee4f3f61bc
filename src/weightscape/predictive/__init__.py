"""Predictions: what draws of weights, or a Gaussian over them, say about targets at new inputs."""

from weightscape.predictive.components import Components
from weightscape.predictive.function_gaussian import FunctionGaussian, function_gaussian
from weightscape.predictive.given import given_classes, given_normals
from weightscape.predictive.linearised import predict_linearised
from weightscape.predictive.links import Exact, FunctionSamples, LaplaceBridge, Link, Probit
from weightscape.predictive.marginal import RegressionDensity
from weightscape.predictive.mix import mix
from weightscape.predictive.predict import predict
from weightscape.predictive.predictive import Predictive
from weightscape.predictive.regression import component_moments
from weightscape.predictive.result import predict_result

__all__ = [
    "Components",
    "Exact",
    "FunctionGaussian",
    "FunctionSamples",
    "LaplaceBridge",
    "Link",
    "Predictive",
    "Probit",
    "RegressionDensity",
    "component_moments",
    "function_gaussian",
    "given_classes",
    "given_normals",
    "mix",
    "predict",
    "predict_linearised",
    "predict_result",
]
