"""Variational inference: a trained density that is as close to the posterior as its family allows."""

from weightscape.inference.variational import families
from weightscape.inference.variational.estimator import Reparameterised
from weightscape.inference.variational.flipout import Flipout
from weightscape.inference.variational.flow_approximation import FlowApproximation
from weightscape.inference.variational.kl import ClosedForm, MonteCarlo
from weightscape.inference.variational.layerwise_vi import LayerwiseVI
from weightscape.inference.variational.local import LocalReparameterised
from weightscape.inference.variational.mean_field import MeanField
from weightscape.inference.variational.mean_field_vi import MeanFieldVI
from weightscape.inference.variational.normalizing_flow_vi import NormalizingFlowVI

__all__ = [
    "ClosedForm",
    "Flipout",
    "FlowApproximation",
    "LayerwiseVI",
    "LocalReparameterised",
    "MeanField",
    "MeanFieldVI",
    "MonteCarlo",
    "NormalizingFlowVI",
    "Reparameterised",
    "families",
]
