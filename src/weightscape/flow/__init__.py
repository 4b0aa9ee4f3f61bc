"""Flows over weights: paths from prior to posterior, velocity fields, their density, and its correction."""

from weightscape.flow import flow_files as _flow_files  # noqa: F401  makes flows storable
from weightscape.flow import population_files as _population_files  # noqa: F401  makes flows storable
from weightscape.flow.after import FlowAfter, small_flow, small_sizes
from weightscape.flow.alignment import Aligned
from weightscape.flow.architecture import Architecture, Equivariant, Plain, Principal, Revised
from weightscape.flow.conditions import ByLabel, ByLoss, ByProperty, Conditions, mean_losses
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
from weightscape.flow.coupling_costs import SquaredDistances, SquaredGeodesics
from weightscape.flow.couplings import Chained, Coupling, Entropic, Independent, OptimalTransport
from weightscape.flow.diffusion import Diffusion
from weightscape.flow.divergence import Divergence, Exact, Hutchinson
from weightscape.flow.exp_map import ExpMapSteps
from weightscape.flow.flow import Flow
from weightscape.flow.flow_matching import FlowMatching
from weightscape.flow.flow_prior import prior_of
from weightscape.flow.flow_transport import DiffusionTransport, FlowTransport
from weightscape.flow.forgetful_steps import ForgetfulSteps
from weightscape.flow.gap import Gap
from weightscape.flow.geometries import Euclidean, Geometric, Geometry, Normalized
from weightscape.flow.grow import Grown, Growth, Round, grow_flow
from weightscape.flow.guidance import Guided, guided
from weightscape.flow.landing import Landing
from weightscape.flow.objective import LogitNormalTimes, OfPull, OfTarget, OfVelocity, UniformTimes
from weightscape.flow.paths import GeodesicPath, Path, Straight, Trigonometric
from weightscape.flow.population_flow import PopulationFlow
from weightscape.flow.population_matching import PopulationMatching
from weightscape.flow.source import PriorSource, Source, WhitenedSource, source_of
from weightscape.flow.sphere_source import SphereSource
from weightscape.flow.tangent_field import TangentField
from weightscape.flow.transfer import transfer
from weightscape.flow.transport import Adaptive, FixedSteps, Solver, Transported, carry, carry_with_density
from weightscape.flow.tuned_landing import tuned_landing

__all__ = [
    "Adaptive",
    "Aligned",
    "Annealed",
    "Architecture",
    "ByLabel",
    "ByLoss",
    "ByProperty",
    "Chained",
    "Conditions",
    "Coupling",
    "Diffusion",
    "DiffusionTransport",
    "Divergence",
    "Entropic",
    "Equivariant",
    "Euclidean",
    "Exact",
    "ExpMapSteps",
    "FixedSteps",
    "Flow",
    "FlowAfter",
    "FlowMatching",
    "FlowTransport",
    "ForgetfulSteps",
    "Gap",
    "GeodesicPath",
    "Geometric",
    "Geometry",
    "Grown",
    "Growth",
    "Guided",
    "Hutchinson",
    "Independent",
    "JumpHMC",
    "Landing",
    "LogitNormalTimes",
    "Moved",
    "Normalized",
    "OfPull",
    "OfTarget",
    "OfVelocity",
    "OptimalTransport",
    "Path",
    "Plain",
    "PopulationFlow",
    "PopulationMatching",
    "Principal",
    "PriorSource",
    "Revised",
    "Round",
    "Solver",
    "Source",
    "SphereSource",
    "SquaredDistances",
    "SquaredGeodesics",
    "Straight",
    "TangentField",
    "Transported",
    "Trigonometric",
    "UniformTimes",
    "WhitenedSource",
    "annealed",
    "annealed_from_prior",
    "carry",
    "carry_with_density",
    "grow_flow",
    "guided",
    "mean_losses",
    "moved",
    "prior_draws",
    "prior_of",
    "small_flow",
    "small_sizes",
    "source_of",
    "transfer",
    "tuned_landing",
    "weighted",
]
