"""Metropolis–Hastings: propose a position, accept it with probability min(1, p(z')/p(z)).

It needs no gradient, so it samples discrete weights too; with continuous ones it is slow in many dimensions. For
every symmetric proposal it leaves p(z) invariant.

Reference: Metropolis et al. (1953), Equation of state calculations by fast computing machines.
"""

import time
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from weightscape.core import Plan, PRNGKey, Scalar, map_chains, registered
from weightscape.core.checks import require_count
from weightscape.core.keys import chain_keys
from weightscape.draws import Draws, Recorder, Sampled
from weightscape.inference.mcmc.proposals import Proposal, RandomWalk
from weightscape.inference.mcmc.recording import WARMUP_SHARE, record_chains, warm_up_chains
from weightscape.inference.method import Circumstances, Method, settings
from weightscape.inference.start import start_positions
from weightscape.posterior import Position, Posterior


@registered("inference.MetropolisHastings")
class MetropolisHastings(Method):
    """Metropolis–Hastings with a symmetric proposal.

    - `proposal`: `RandomWalk(scale)` for continuous weights, `Flip(values)` for discrete ones.
    - `num_chains`, `num_draws`: how many chains, and draws kept of each.
    - `num_warmup`: transitions before the first draw.  `thin`: transitions for each draw kept.
    """

    proposal: Proposal = eqx.field(default_factory=RandomWalk)
    num_chains: int = eqx.field(static=True, default=4)
    num_draws: int = eqx.field(static=True, default=1000)
    num_warmup: int = eqx.field(static=True, default=1000)
    thin: int = eqx.field(static=True, default=10)

    def __check_init__(self):
        for name in ("num_chains", "num_draws", "num_warmup", "thin"):
            require_count(f"`{name}` of MetropolisHastings", getattr(self, name))

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Draws:
        progress, began = around.progress, time.monotonic()
        key_start, key_steps = jax.random.split(key)
        recorder = Recorder(posterior, around.store)
        step = Metropolis(posterior, self.proposal)
        positions = start_positions(key_start, posterior, self.num_chains, around.init)
        keys, state = chain_keys(key_steps, self.num_chains), map_chains(step.init, positions)
        warmup = Plan(self.num_warmup, seconds=WARMUP_SHARE * progress.seconds_left())
        state = warm_up_chains(Unrecorded(step), keys, state, warmup, progress)
        plan = Plan(self.num_draws, self.thin, first=self.num_warmup, seconds=progress.seconds_left())
        record_chains(recorder, step, keys, state, plan, progress)
        return recorder.finish({**settings(self), "seconds": time.monotonic() - began}, examine=True)


class State(NamedTuple):
    """Where the chain is, and the log density there."""

    position: Position
    log_density: Scalar


class Notes(NamedTuple):
    """What a person may want to know of a transition."""

    acceptance: Scalar
    is_accepted: Bool[Array, ""]


class Metropolis(eqx.Module):
    """One transition on a posterior with a symmetric proposal."""

    posterior: Posterior
    proposal: Proposal

    def init(self, position: Position) -> State:
        """The chain's state at a position."""
        return State(position, self.posterior.log_density(position))

    def move(self, key: PRNGKey, state: State) -> tuple[State, Notes]:
        """Propose, and accept or stay; a non-finite density is never accepted."""
        key_proposal, key_accept = jax.random.split(key)
        proposed = self.init(self.proposal.propose(key_proposal, state.position))
        log_ratio = jnp.nan_to_num(proposed.log_density - state.log_density, nan=-jnp.inf, posinf=-jnp.inf)
        acceptance = jnp.exp(jnp.minimum(log_ratio, 0))
        accept = jax.random.uniform(key_accept, dtype=acceptance.dtype) < acceptance
        chosen = jax.tree.map(lambda new, old: jnp.where(accept, new, old), proposed, state)
        return chosen, Notes(acceptance, accept)

    def __call__(self, key: PRNGKey, state: State, index: Int[Array, ""]) -> tuple[State, Sampled]:
        """One transition, and the draw it ends in."""
        state, notes = self.move(key, state)
        return state, Sampled(self.posterior.constrain(state.position), state.log_density, notes._asdict())


class Unrecorded(eqx.Module):
    """The same transition for warm-up, which keeps no draws."""

    step: Metropolis

    def __call__(self, key: PRNGKey, state: State, index: Int[Array, ""]) -> tuple[State, Notes]:
        return self.step.move(key, state)
