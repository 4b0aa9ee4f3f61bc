"""Moves: every draw of an approximation starts a short chain of its own that leaves the posterior invariant.

    θ_c⁰ ~ q,      θ_cᵗ ~ K(θ_cᵗ⁻¹ → ·),      K p = p

The distribution of θᵗ is never farther from the posterior than that of θᵗ⁻¹, and starts that are nearly right are soon
right. The chains are independent, so the ends of n chains are n independent draws. Whether they have arrived is seen
in the drift of their log densities and functions (`drift`). Tuned transitions come first and are not counted.

What moves cannot mend: shares of modes that no chain travels between stay those of q. Jumps and annealing mend these.
"""

import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from weightscape.core import PRNGKey, Progress, default_progress, encode, map_chains
from weightscape.core.checks import require, require_count, require_type
from weightscape.core.facts import Facts
from weightscape.core.keys import chain_keys, require_key
from weightscape.draws import Draws, Header, Health
from weightscape.draws.function_space import evaluate_functions
from weightscape.flow.correction.drift import Drift, drift_at_the_end, drift_between_halves, too_many_dead
from weightscape.flow.correction.ensemble import Ensemble, advance, begin, retuned
from weightscape.inference import HMC
from weightscape.inference.mcmc.transition import Hamiltonian
from weightscape.inference.start import require_gradient
from weightscape.posterior import Parameters, Position, Posterior

_FEWEST_CHAINS = 8
"""With fewer the standard error of a drift is itself unknown."""


class Moved(NamedTuple):
    """Draws after their moves, and whether the chains had arrived.

    - `draws`: the ends of the chains as one chain of independent draws.
    - `at_the_end`, `between_halves`: the drift of the log density, then of the functions at the posterior's example.
    - `acceptance`: the mean over chains, of each counted transition.
    - `is_dead`: which draws are as they came, every proposal refused; `draws[:, ~is_dead]` are the others.
    """

    draws: Draws
    at_the_end: Drift
    between_halves: Drift
    acceptance: Float[np.ndarray, " transition"]
    is_dead: Bool[np.ndarray, " draw"]

    @property
    def num_dead(self) -> int:
        """How many chains never moved."""
        return int(self.is_dead.sum())

    @property
    def has_converged(self) -> bool:
        """Whether nothing drifts, and no more chains are dead than chance explains."""
        dead = too_many_dead(self.num_dead, len(self.is_dead), self.acceptance)
        return self.at_the_end.is_still and self.between_halves.is_still and not dead


def moved(
    key: PRNGKey,
    posterior: Posterior,
    draws: Draws,
    *,
    num_transitions: int = 10,
    kernel: HMC | None = None,
    progress: Progress | None = None,
) -> Moved:
    """Draws of the posterior, from draws near it.

    - `draws`: the starts, all weighing the same.
    - `num_transitions`: counted transitions of each chain; fewer are made where `progress` says that time is up.
    - `kernel`: HMC's settings; None is `HMC(num_warmup=10)`. Its `num_warmup` transitions tune `step_size`; its
      numbers of chains and draws, and `thin`, play no part.

    Example:
    >>> better = moved(key, posterior, approximation.sample(key_draws, 1000))   # doctest: +SKIP
    >>> better.has_converged, better.num_dead                                   # doctest: +SKIP
    """
    require_key(key, "moved")
    require_count("`num_transitions` of moved", num_transitions)
    require_gradient(posterior, "moved")
    began, kernel = time.monotonic(), HMC(num_warmup=10) if kernel is None else kernel
    transition, starts = kernel.transition(posterior), _starts(draws)
    ensemble = begin(transition.posterior, starts, kernel.mass, kernel.step_size)
    _require_finite(ensemble)
    keys = chain_keys(key, len(draws))
    for _ in range(kernel.num_warmup):
        ensemble, acceptance = advance(keys, transition, ensemble)
        ensemble = retuned(ensemble, acceptance, kernel.target_acceptance)
    run = _run(keys, transition, ensemble, num_transitions, default_progress(progress))
    facts = Facts(
        method="moved",
        of=draws.facts.get("method"),
        kernel=encode(kernel).tree,
        num_transitions=len(run.acceptance),
        step_size=float(run.ensemble.tuning.step_size),
        gradients=run.ensemble.num_gradients * len(draws),
        seconds=time.monotonic() - began,
    )
    found = drift_at_the_end(run.trace), drift_between_halves(run.trace)
    return Moved(_as_draws(posterior, run, facts), *found, run.acceptance.mean(axis=1), ~run.ensemble.has_moved)


class _Run(NamedTuple):
    """The ensemble at the end, its quantities at every moment from the first on, and all acceptances."""

    ensemble: Ensemble
    trace: Float[np.ndarray, "moment chain quantity"]
    acceptance: Float[np.ndarray, "transition chain"]


def _run(
    keys: Key[Array, " chain"], transition: Hamiltonian, ensemble: Ensemble, num_transitions: int, progress: Progress
) -> _Run:
    trace, acceptances = [_quantities(transition.posterior, ensemble)], []
    progress.start("moves", num_transitions)
    try:
        while len(acceptances) < num_transitions and (not acceptances or progress.seconds_left() > 0):
            ensemble, acceptance = advance(keys, transition, ensemble)
            trace.append(_quantities(transition.posterior, ensemble))
            acceptances.append(acceptance)
            progress.advance(len(acceptances), {"acceptance": float(acceptance.mean())})
    finally:
        progress.finish()
    return _Run(ensemble, np.stack(trace), np.stack(acceptances))


def _quantities(posterior: Posterior, ensemble: Ensemble) -> Float[np.ndarray, "chain quantity"]:
    """The log density of each chain, then its function at the example."""
    header = Header.of(posterior)
    functions = evaluate_functions(header, _params(posterior, ensemble), header.example.x)[0]
    log_density = np.asarray(ensemble.chain.logdensity, np.float64)
    return np.concatenate([log_density[:, None], functions.reshape(len(log_density), -1)], axis=1)


def _params(posterior: Posterior, ensemble: Ensemble) -> Parameters:
    """Parameters of all chains as draws of a single one."""
    params = map_chains(posterior.constrain, ensemble.chain.position)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], params)


def _as_draws(posterior: Posterior, run: _Run, facts: Facts) -> Draws:
    log_density = np.asarray(run.ensemble.chain.logdensity)[None]
    info = {"acceptance": run.acceptance.mean(axis=0)[None]}
    params = _params(posterior, run.ensemble)
    return Draws(params, log_density, *Header.of(posterior), info, health=Health(1), facts=facts)


def _starts(draws: Draws) -> Position:
    remedy = "Pass what `sample` of an approximation returns."
    require_type(isinstance(draws, Draws), "`draws` of moved must be Draws", type(draws).__name__, remedy)
    remedy = "Pass the draws before they were weighted; moves do what weights would."
    require(draws.log_weights is None, "`draws` of moved must weigh the same", "draws with `log_weights`", remedy)
    asked = f"`draws` of moved must be at least {_FEWEST_CHAINS}"
    require(len(draws) >= _FEWEST_CHAINS, asked, len(draws), "Draw more, or run HMC with `init=draws`.")
    return jax.tree.map(lambda leaf: jnp.reshape(leaf, (len(draws), *leaf.shape[2:])), draws.positions())


def _require_finite(ensemble: Ensemble) -> None:
    bad = np.flatnonzero(~np.isfinite(ensemble.chain.logdensity)).tolist()
    remedy = "Leave these draws out, or train the approximation for longer."
    require(not bad, "The log density must be finite where chains start", f"non-finite values of draws {bad}", remedy)
