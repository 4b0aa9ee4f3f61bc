"""Flows over weights: paths from prior to posterior, velocity fields, their density, and its correction."""

from weightscape.flow import flow_files as _flow_files  # noqa: F401  makes flows storable
from weightscape.flow.after import FlowAfter, small_flow
from weightscape.flow.alignment import Aligned
from weightscape.flow.architecture import Architecture, Equivariant, Plain, Principal
from weightscape.flow.correction import (
    Annealed,
    JumpHMC,
    Moved,
    annealed,
    annealed_from_prior,
    moved,
    prior_draws,
    weighted,
)
from weightscape.flow.couplings import Chained, Coupling, Entropic, Independent, OptimalTransport
from weightscape.flow.diffusion import Diffusion
from weightscape.flow.divergence import Divergence, Exact, Hutchinson
from weightscape.flow.flow import Flow
from weightscape.flow.flow_matching import FlowMatching
from weightscape.flow.flow_transport import DiffusionTransport, FlowTransport
from weightscape.flow.gap import Gap
from weightscape.flow.grow import Grown, Growth, Round, grow_flow
from weightscape.flow.landing import Landing
from weightscape.flow.objective import LogitNormalTimes, OfPull, OfTarget, OfVelocity, UniformTimes
from weightscape.flow.paths import Path, Straight, Trigonometric
from weightscape.flow.source import PriorSource, Source, WhitenedSource, source_of
from weightscape.flow.transport import Adaptive, FixedSteps, Solver, Transported, carry, carry_with_density
from weightscape.flow.tuned_landing import tuned_landing

__all__ = [
    "Adaptive",
    "Aligned",
    "Annealed",
    "Architecture",
    "Chained",
    "Coupling",
    "Diffusion",
    "DiffusionTransport",
    "Divergence",
    "Entropic",
    "Equivariant",
    "Exact",
    "FixedSteps",
    "Flow",
    "FlowAfter",
    "FlowMatching",
    "FlowTransport",
    "Gap",
    "Grown",
    "Growth",
    "Hutchinson",
    "Independent",
    "JumpHMC",
    "Landing",
    "LogitNormalTimes",
    "Moved",
    "OfPull",
    "OfTarget",
    "OfVelocity",
    "OptimalTransport",
    "Path",
    "Plain",
    "Principal",
    "PriorSource",
    "Round",
    "Solver",
    "Source",
    "Straight",
    "Transported",
    "Trigonometric",
    "UniformTimes",
    "WhitenedSource",
    "annealed",
    "annealed_from_prior",
    "carry",
    "carry_with_density",
    "grow_flow",
    "moved",
    "prior_draws",
    "small_flow",
    "source_of",
    "tuned_landing",
    "weighted",
]
