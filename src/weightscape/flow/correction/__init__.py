"""Correction: draws of an approximation are weighed, moved, joined with jumps or annealed to the exact posterior."""

from weightscape.flow.correction.anneal import Annealed, annealed
from weightscape.flow.correction.drift import Drift
from weightscape.flow.correction.jumps import JumpHMC
from weightscape.flow.correction.moves import Moved, moved
from weightscape.flow.correction.transport import Transport
from weightscape.flow.correction.weights import weighted

__all__ = ["Annealed", "Drift", "JumpHMC", "Moved", "Transport", "annealed", "moved", "weighted"]
