"""Models and posteriors: the densities that inference works on."""

from weightscape.posterior.joint import Joint, Placed
from weightscape.posterior.model import Model, PriorPredictive
from weightscape.posterior.parameters import Parameters, Position
from weightscape.posterior.posterior import Posterior

__all__ = ["Joint", "Model", "Parameters", "Placed", "Position", "Posterior", "PriorPredictive"]
