"""Metropolis–Hastings: propose a position, accept it with probability min(1, p(z')/p(z)).

It needs no gradient, so it samples discrete weights too; with continuous ones it is slow in many dimensions. For
every symmetric proposal it leaves p(z) invariant.

Reference: Metropolis et al. (1953), Equation of state calculations by fast computing machines.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from weightscape.core import PRNGKey, Scalar, registered
from weightscape.core.checks import require_count, require_positive
from weightscape.core.numbers import number
from weightscape.draws import Draws, Sampled
from weightscape.inference.chains import Schedule, run_chains
from weightscape.inference.mcmc.proposals import Proposal, RandomWalk
from weightscape.inference.method import Circumstances, Method
from weightscape.inference.sampler import Notes, Sampler
from weightscape.posterior import Position, Posterior


@registered("inference.MetropolisHastings")
class MetropolisHastings(Method):
    """Metropolis–Hastings with a symmetric proposal.

    - `proposal`: `RandomWalk(scale)` for continuous weights, `Flip(values)` for discrete ones.
    - `num_chains`, `num_draws`: how many chains, and draws kept of each.
    - `num_warmup`: transitions before the first draw.  `thin`: transitions for each draw kept.
    - `temperature`: T of the target p(D | θ)^(1/T) p(θ)^(1/T).
    """

    proposal: Proposal = eqx.field(default_factory=RandomWalk)
    num_chains: int = eqx.field(static=True, default=4)
    num_draws: int = eqx.field(static=True, default=1000)
    num_warmup: int = eqx.field(static=True, default=1000)
    thin: int = eqx.field(static=True, default=10)
    temperature: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        for name in ("num_chains", "num_draws", "num_warmup", "thin"):
            require_count(f"`{name}` of MetropolisHastings", getattr(self, name))
        require_positive("`temperature` of MetropolisHastings", self.temperature)

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Draws:
        sampler = Metropolis(posterior.at_temperature(self.temperature), self.proposal)
        schedule = Schedule(self.num_chains, self.num_draws, self.num_warmup, self.thin)
        return run_chains(key, self, sampler, schedule, around)


class State(NamedTuple):
    """Where the chain is, and the log density there."""

    position: Position
    log_density: Scalar


class Metropolis(Sampler):
    """One transition on a posterior with a symmetric proposal."""

    posterior: Posterior
    proposal: Proposal

    def init(self, position: Position) -> State:
        """The chain's state at a position."""
        return State(position, self.posterior.log_density(position))

    def adapt(self, key: PRNGKey, state: State, index: Int[Array, ""]) -> tuple[State, Notes]:
        """There is nothing to learn; warm-up only travels."""
        return self.move(key, state, index)

    def settle(self, state: State) -> State:
        return state

    def move(self, key: PRNGKey, state: State, index: Int[Array, ""]) -> tuple[State, Notes]:
        """Propose, and accept or stay; a non-finite density is never accepted."""
        key_proposal, key_accept = jax.random.split(key)
        proposed = self.init(self.proposal.propose(key_proposal, state.position))
        log_ratio = jnp.nan_to_num(proposed.log_density - state.log_density, nan=-jnp.inf, posinf=-jnp.inf)
        acceptance = jnp.exp(jnp.minimum(log_ratio, 0))
        accept = jax.random.uniform(key_accept, dtype=acceptance.dtype) < acceptance
        chosen = jax.tree.map(lambda new, old: jnp.where(accept, new, old), proposed, state)
        return chosen, {"acceptance": acceptance, "is_accepted": accept}

    def observe(self, state: State, notes: Notes) -> Sampled:
        return Sampled(self.posterior.constrain(state.position), state.log_density, notes)

    def position(self, state: State) -> Position:
        return state.position

    def place(self, state: State, position: Position) -> State:
        return self.init(position)
