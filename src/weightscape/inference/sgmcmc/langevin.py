"""Overdamped Langevin dynamics in Euler's discretisation: the chain behind ULA and SGLD.

    θ ← θ + (h/2) G ĝ(θ) + s √h G^½ ξ,      ξ ~ N(0, I)

with h the step size, ĝ the (estimated) gradient of log p(D, θ), G the preconditioner, and s = 1 but for the exploring
parts of cycles, where s = 0. There is no rejection, so a step size that does not vanish leaves a bias of order h: on a
Gaussian target with precision λ, exact gradients and G = 1 the chain's own variance is 1/(λ (1 − hλ/4)), and it
diverges for hλ ≥ 4. Gradient noise of variance V adds h² V/4 to the variance of each step.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from weightscape.core import PRNGKey, tree
from weightscape.draws import Sampled
from weightscape.inference.sampler import Notes, Sampler
from weightscape.inference.sgmcmc.minibatches import Minibatches
from weightscape.inference.sgmcmc.preconditioners import Preconditioner
from weightscape.inference.sgmcmc.schedules import StepSize
from weightscape.posterior import Position, Posterior


class State(NamedTuple):
    """Where the chain is, and what the preconditioner has learned."""

    position: Position
    preconditioner: Any


class Langevin(Sampler):
    """One Langevin step on `posterior`; `minibatches` gives ĝ, `step_size` h and s, `preconditioner` G."""

    posterior: Posterior
    minibatches: Minibatches
    step_size: StepSize
    preconditioner: Preconditioner

    def init(self, position: Position) -> State:
        """The chain's state at a position."""
        return State(position, self.preconditioner.init(position))

    def adapt(self, key: PRNGKey, state: State, index: Int[Array, ""]) -> tuple[State, Notes]:
        """Step, with a preconditioner that learns from the step's gradient."""
        return self._step(key, state, index, learns=True)

    def settle(self, state: State) -> State:
        return state._replace(preconditioner=self.preconditioner.settle(state.preconditioner))

    def move(self, key: PRNGKey, state: State, index: Int[Array, ""]) -> tuple[State, Notes]:
        return self._step(key, state, index, learns=not self.preconditioner.is_fixed)

    def observe(self, state: State, notes: Notes) -> Sampled:
        """The draw, with the log density of all points: computed for kept draws only."""
        log_density = self.posterior.log_density(state.position)
        return Sampled(self.posterior.constrain(state.position), log_density, notes)

    def position(self, state: State) -> Position:
        return state.position

    def place(self, state: State, position: Position) -> State:
        return state._replace(position=position)

    def _step(self, key: PRNGKey, state: State, index: Int[Array, ""], *, learns: bool) -> tuple[State, Notes]:
        key_batch, key_noise = jax.random.split(key)
        h, s = self.step_size.size(index), self.step_size.noise(index)
        gradient = self.minibatches.gradient(key_batch, self.posterior, state.position)
        learned = state.preconditioner
        if learns:
            learned = self.preconditioner.learn(learned, tree.scale(1 / self.posterior.num_points, gradient))
        drift = tree.scale(h / 2, self.preconditioner.apply(learned, gradient))
        noise = self.preconditioner.apply_root(learned, tree.normal_like(key_noise, gradient))
        position = tree.add(state.position, tree.add(drift, tree.scale(s * jnp.sqrt(h), noise)))
        return State(position, learned), {"step_size": h, "noise": s, "is_accepted": tree.all_finite(position)}
