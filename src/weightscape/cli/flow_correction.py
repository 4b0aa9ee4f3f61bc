"""What brings a flow's draws to the posterior, by name: weights, moves of HMC, or annealing."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from weightscape.cli.flow_measure import Measured
from weightscape.core import InputError, PRNGKey, Progress
from weightscape.draws import Draws
from weightscape.flow import Diffusion, DiffusionTransport, annealed, moved, weighted
from weightscape.posterior import Posterior

_NUM_PATH_STEPS = 64
"""Of the paths that are annealed: fewer than those that are weighed, since a particle walks many."""


class Corrected(NamedTuple):
    """The outcome of a correction.

    - `draws`: None where it was refused; `refusal` then says why.
    - `notes`: numbers for `result.json`.  `told`: one sentence.
    """

    name: str
    draws: Draws | None
    notes: dict[str, Any]
    told: str
    refusal: InputError | None = None


def corrected_by(key: PRNGKey, name: str, measured: Measured, posterior: Posterior, progress: Progress) -> Corrected:
    """The draws of a flow, corrected as in `CORRECTIONS`."""
    try:
        draws, notes, told = CORRECTIONS[name](key, measured, posterior, progress)
    except InputError as error:
        return Corrected(name, None, {"refused": str(error)}, f"Not corrected by {name}.", error)
    return Corrected(name, draws, notes, told)


_Outcome = tuple[Draws, dict[str, Any], str]


def _by_weights(key: PRNGKey, measured: Measured, posterior: Posterior, progress: Progress) -> _Outcome:
    del key, posterior, progress
    draws, found = weighted(measured.draws), measured.evidence
    notes = {name: draws.facts[name] for name in ("efficiency", "pareto_k")}
    return draws, notes, f"By weights, {found.effective_sample_size:.0f} of {len(draws)} draws count."


def _by_moves(key: PRNGKey, measured: Measured, posterior: Posterior, progress: Progress) -> _Outcome:
    result = moved(key, posterior, measured.draws, progress=progress)
    acceptance = float(result.acceptance.mean())
    notes = {
        "num_transitions": len(result.acceptance),
        "acceptance": acceptance,
        "num_dead": result.num_dead,
        "has_converged": result.has_converged,
    }
    arrived = "have arrived" if result.has_converged else "still drift: more transitions, or annealing, would help"
    return result.draws, notes, f"Moved by HMC, accepting {acceptance:.0%}; the chains {arrived}."


def _by_annealing(key: PRNGKey, measured: Measured, posterior: Posterior, progress: Progress) -> _Outcome:
    transport = DiffusionTransport(Diffusion(measured.flow, _NUM_PATH_STEPS))
    result = annealed(key, posterior, transport, num_particles=len(measured.draws), progress=progress)
    error = result.log_evidence.standard_error
    notes = {
        "log_evidence": {"value": result.log_evidence.value, "standard_error": error if math.isfinite(error) else None},
        "num_stages": len(result.powers) - 1,
        "effective_roots": result.effective_roots,
        "is_trusted": result.is_trusted,
    }
    trust = "" if result.is_trusted else "; too few of the first particles count for it to be trusted"
    return result.draws, notes, f"Annealed in {notes['num_stages']} stages: {result.log_evidence}{trust}."


CORRECTIONS: dict[str, Callable[[PRNGKey, Measured, Posterior, Progress], _Outcome]] = {
    "weights": _by_weights,
    "hmc": _by_moves,
    "smc": _by_annealing,
}
