"""Correction: draws of an approximation are weighed, moved, joined with jumps or annealed to the exact posterior."""

from weightscape.flow.correction.anneal import Annealed, annealed
from weightscape.flow.correction.drift import Drift
from weightscape.flow.correction.from_prior import annealed_from_prior, prior_draws
from weightscape.flow.correction.jumps import JumpHMC
from weightscape.flow.correction.moves import Moved, moved
from weightscape.flow.correction.transport import Transport
from weightscape.flow.correction.weights import weighted

__all__ = [
    "Annealed",
    "Drift",
    "JumpHMC",
    "Moved",
    "Transport",
    "annealed",
    "annealed_from_prior",
    "moved",
    "prior_draws",
    "weighted",
]
