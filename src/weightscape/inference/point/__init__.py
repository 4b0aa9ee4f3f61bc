"""Point estimates: MAP and deep ensembles."""

from weightscape.inference.point.ensemble import MAP, DeepEnsemble

__all__ = ["MAP", "DeepEnsemble"]
