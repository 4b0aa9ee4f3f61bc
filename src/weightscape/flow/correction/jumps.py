"""Jumps: Hamiltonian Monte Carlo that now and then proposes a fresh draw of an approximation q.

    θ' ~ q,      accepted with probability min(1, w(θ') / w(θ)),      w = p(D, ·) / q

HMC travels well within a mode and hardly between modes; q knows many modes and gets their shares and shapes wrong. Each
of the two transitions leaves the posterior invariant, so both in turn do too: chains spend in each mode the share of
time that it deserves, wherever q reaches.

Of a stationary chain's jumps the share ∫∫ min(p(θ) q(θ'), p(θ') q(θ)) dθ dθ' is accepted, all of them where q = p.

Reference: Tierney (1994), Markov chains for exploring posterior distributions, section 2.3.3; Gabrié, Rotskoff &
Vanden-Eijnden (2022), Adaptive Monte Carlo augmented with normalizing flows, algorithm 1.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from weightscape.core import PRNGKey, Scalar, registered
from weightscape.core.checks import require, require_count, require_type
from weightscape.core.numbers import number
from weightscape.draws import Draws, Sampled
from weightscape.inference import Approximation, DiagonalMass, Method
from weightscape.inference.chains import Schedule, run_chains
from weightscape.inference.mcmc.length import Steps
from weightscape.inference.mcmc.mass import Mass
from weightscape.inference.mcmc.settings import require_chain_settings, require_target
from weightscape.inference.mcmc.transition import Hamiltonian
from weightscape.inference.mcmc.warmup import Adaptive, change_when
from weightscape.inference.method import Circumstances, Init
from weightscape.inference.sampler import Notes, Sampler
from weightscape.inference.start import require_gradient
from weightscape.posterior import Position, Posterior


@registered("flow.JumpHMC")
class JumpHMC(Method):
    """Hamiltonian Monte Carlo with jumps; `run(key, posterior, init=approximation)` says whose draws are proposed.

    - `jump_every`: after how many transitions of HMC a jump is proposed. log q of a given position is computed at
      jumps alone, once, which for a flow costs as much as many leapfrog steps.
    - the other settings: as in HMC.

    Chains start at draws of the approximation, and jump in warm-up too, so that its tuning fits all modes. Notes:
    `jump_acceptance` is the probability with which the latest jump was accepted, 0 before the first; `has_jumped`
    says whether one was, since the draw before. A run that is resumed must be given the same approximation.
    """

    num_chains: int = eqx.field(static=True, default=4)
    num_draws: int = eqx.field(static=True, default=500)
    num_warmup: int = eqx.field(static=True, default=500)
    num_leapfrog: int = eqx.field(static=True, default=32)
    jump_every: int = eqx.field(static=True, default=5)
    jitter: Float[Array, ""] = eqx.field(default=0.5, converter=number)
    step_size: Float[Array, ""] = eqx.field(default=0.05, converter=number)
    target_acceptance: Float[Array, ""] = eqx.field(default=0.8, converter=number)
    mass: Mass = eqx.field(default_factory=DiagonalMass)
    thin: int = eqx.field(static=True, default=1)
    temperature: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        require_chain_settings(self)
        require_target(self)
        require_count("`num_leapfrog` of JumpHMC", self.num_leapfrog)
        require_count("`jump_every` of JumpHMC", self.jump_every)

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Draws:
        require_gradient(posterior, "JumpHMC")
        proposal = _require_density(around.init)
        length = Steps(jnp.asarray(self.num_leapfrog), self.jitter)
        transition = Hamiltonian(posterior.at_temperature(self.temperature), length)
        num_warmup = jnp.asarray(self.num_warmup)
        walker = Adaptive(transition, self.mass, self.step_size, self.target_acceptance, num_warmup)
        sampler = Jumping(walker, proposal.bare(), jnp.asarray(self.jump_every))
        schedule = Schedule(self.num_chains, self.num_draws, self.num_warmup, self.thin)
        return run_chains(key, self, sampler, schedule, around)


class State(NamedTuple):
    """The state of HMC, and the acceptance of the latest jump."""

    walker: Any
    jump_acceptance: Scalar


class Jumping(Sampler):
    """A sampler whose every `every`-th transition is followed by a jump to a draw of `proposal`, if accepted."""

    walker: Adaptive
    proposal: Approximation
    every: Int[Array, ""]

    # Written out: type checkers would take the parent's abstract `posterior` for an argument of it.
    def __init__(self, walker: Adaptive, proposal: Approximation, every: Int[Array, ""]):
        self.walker = walker
        self.proposal = proposal
        self.every = every

    @property
    def posterior(self) -> Posterior:  # pyright: ignore[reportIncompatibleVariableOverride]  AbstractVar allows it
        """The target."""
        return self.walker.posterior

    def init(self, position: Position) -> State:
        """No jump was made yet."""
        walker = self.walker.init(position)
        return State(walker, jnp.zeros_like(walker.chain.logdensity))

    def adapt(self, key: PRNGKey, state: State, index: Int[Array, ""]) -> tuple[State, Notes]:
        """HMC learns from its own transition, not from the jump."""
        key_walk, key_jump = jax.random.split(key)
        walker, notes = self.walker.adapt(key_walk, state.walker, index)
        return self._jump_when_due(key_jump, state._replace(walker=walker), notes, index)

    def settle(self, state: State) -> State:
        return state._replace(walker=self.walker.settle(state.walker))

    def move(self, key: PRNGKey, state: State, index: Int[Array, ""]) -> tuple[State, Notes]:
        key_walk, key_jump = jax.random.split(key)
        walker, notes = self.walker.move(key_walk, state.walker, index)
        return self._jump_when_due(key_jump, state._replace(walker=walker), notes, index)

    def observe(self, state: State, notes: Notes) -> Sampled:
        return self.walker.observe(state.walker, notes)

    def position(self, state: State) -> Position:
        return self.walker.position(state.walker)

    def place(self, state: State, position: Position) -> State:
        return state._replace(walker=self.walker.place(state.walker, position))

    def _jump_when_due(self, key: PRNGKey, state: State, notes: Notes, index: Int[Array, ""]) -> tuple[State, Notes]:
        no_jump = jnp.zeros((), bool)
        is_due = (index + 1) % self.every == 0
        state, has_jumped = change_when(is_due, lambda old: self._jump(key, old[0]), (state, no_jump))
        jumped = {"jump_acceptance": state.jump_acceptance, "has_jumped": has_jumped}
        return state, {**notes, **jumped, "is_accepted": notes["is_accepted"] | has_jumped}

    def _jump(self, key: PRNGKey, state: State) -> tuple[State, Array]:
        key_proposal, key_accept = jax.random.split(key)
        position, log_proposal = self.proposal.sample_with_density(key_proposal)
        there = self.walker.place(state.walker, position)
        log_weight = state.walker.chain.logdensity - self.proposal.log_density(self.walker.position(state.walker))
        log_ratio = there.chain.logdensity - log_proposal - log_weight
        acceptance = jnp.exp(jnp.minimum(jnp.nan_to_num(log_ratio, nan=-jnp.inf), 0))
        is_accepted = jax.random.uniform(key_accept, (), acceptance.dtype) < acceptance
        walker = jax.tree.map(lambda new, old: jnp.where(is_accepted, new, old), there, state.walker)
        return State(walker, acceptance), is_accepted


def _require_density(init: Init) -> Approximation:
    remedy = "Pass what a method with a density returned, such as a flow or Laplace()'s Gaussian."
    named = type(init).__name__
    require_type(isinstance(init, Approximation), "`init` of JumpHMC must be an approximation", named, remedy)
    assert isinstance(init, Approximation)
    asked = "`init` of JumpHMC must have a density over all weights"
    require(init.is_proper, asked, "one that holds some fixed", "Approximate all weights.")
    return init
