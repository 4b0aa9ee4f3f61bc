"""Predictions: what draws of weights say about targets at new inputs."""

from weightscape.predictive.components import Components
from weightscape.predictive.predict import predict
from weightscape.predictive.predictive import Predictive
from weightscape.predictive.regression import component_moments

__all__ = ["Components", "Predictive", "component_moments", "predict"]
