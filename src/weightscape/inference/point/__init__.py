"""Point estimates and what can be read off the way to them: MAP, deep ensembles, populations, SWAG."""

from weightscape.inference.point.ensemble import MAP, DeepEnsemble
from weightscape.inference.point.mixture_of_gaussians import MixtureOfGaussians
from weightscape.inference.point.population import Population, RunSplit, split_runs
from weightscape.inference.point.swag import SWAG

__all__ = ["MAP", "SWAG", "DeepEnsemble", "MixtureOfGaussians", "Population", "RunSplit", "split_runs"]
