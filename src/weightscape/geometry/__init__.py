"""Geometry of weight space: what is left of it once symmetries are removed."""

from weightscape.geometry.activation_matching import ActivationMatching
from weightscape.geometry.barrier import Barrier, barrier
from weightscape.geometry.bend import train_bend
from weightscape.geometry.canonical import CanonicalForm, canonical, unit_scales
from weightscape.geometry.compact import compact
from weightscape.geometry.compare_weights import WeightComparison, compare_weights
from weightscape.geometry.energy import LocalEnergy, local_energy
from weightscape.geometry.fits import DiagonalFit, LowRankFit
from weightscape.geometry.loss import Loss, loss_of
from weightscape.geometry.manifold import Manifold
from weightscape.geometry.match import Matched, Matching
from weightscape.geometry.merge import merge
from weightscape.geometry.paths import Geodesic, Linear, OneBend, Path, geodesic, rebased
from weightscape.geometry.prune import Pruned, prune
from weightscape.geometry.pruning_scores import ByMagnitude, BySignalToNoise, ByStandardDeviation
from weightscape.geometry.rebase import rebase, rebase_elements
from weightscape.geometry.references import Centre, FirstDraw, MovingMean, Reference
from weightscape.geometry.section import Plane, Section, section
from weightscape.geometry.sinkhorn import SinkhornMatching
from weightscape.geometry.sphere_product import SphereProduct
from weightscape.geometry.spheres import Sphere
from weightscape.geometry.straight_through import StraightThrough
from weightscape.geometry.transpositions import transpositions, with_transpositions
from weightscape.geometry.unimodality import Unimodality, unimodality
from weightscape.geometry.vector_manifold import VectorManifold
from weightscape.geometry.weight_diagnostics import WeightDiagnostics, diagnose_weights, marginals
from weightscape.geometry.weight_matching import WeightMatching
from weightscape.geometry.weight_moments import Moments, moments

__all__ = [
    "ActivationMatching",
    "Barrier",
    "ByMagnitude",
    "BySignalToNoise",
    "ByStandardDeviation",
    "CanonicalForm",
    "Centre",
    "DiagonalFit",
    "FirstDraw",
    "Geodesic",
    "Linear",
    "LocalEnergy",
    "Loss",
    "LowRankFit",
    "Manifold",
    "Matched",
    "Matching",
    "Moments",
    "MovingMean",
    "OneBend",
    "Path",
    "Plane",
    "Pruned",
    "Reference",
    "Section",
    "SinkhornMatching",
    "Sphere",
    "SphereProduct",
    "StraightThrough",
    "Unimodality",
    "VectorManifold",
    "WeightComparison",
    "WeightDiagnostics",
    "WeightMatching",
    "barrier",
    "canonical",
    "compact",
    "compare_weights",
    "diagnose_weights",
    "geodesic",
    "local_energy",
    "loss_of",
    "marginals",
    "merge",
    "moments",
    "prune",
    "rebase",
    "rebase_elements",
    "rebased",
    "section",
    "train_bend",
    "transpositions",
    "unimodality",
    "unit_scales",
    "with_transpositions",
]
