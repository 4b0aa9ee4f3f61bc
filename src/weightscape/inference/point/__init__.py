"""Point estimates and what can be read off the way to them: MAP, deep ensembles, SWAG."""

from weightscape.inference.point.ensemble import MAP, DeepEnsemble
from weightscape.inference.point.mixture_of_gaussians import MixtureOfGaussians
from weightscape.inference.point.swag import SWAG

__all__ = ["MAP", "SWAG", "DeepEnsemble", "MixtureOfGaussians"]
