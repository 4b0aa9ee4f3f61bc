"""Flows over weights: paths from prior to posterior, velocity fields, and the density that they carry along."""

from weightscape.flow.divergence import Divergence, Exact, Hutchinson
from weightscape.flow.paths import Path, Straight, Trigonometric
from weightscape.flow.source import PriorSource, Source, WhitenedSource, source_of
from weightscape.flow.transport import Adaptive, FixedSteps, Solver, Transported, carry, carry_with_density

__all__ = [
    "Adaptive",
    "Divergence",
    "Exact",
    "FixedSteps",
    "Hutchinson",
    "Path",
    "PriorSource",
    "Solver",
    "Source",
    "Straight",
    "Transported",
    "Trigonometric",
    "WhitenedSource",
    "carry",
    "carry_with_density",
    "source_of",
]
