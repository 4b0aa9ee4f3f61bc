"""Nosé–Hoover dynamics in a symmetric splitting: the chain behind SGNHT.

    θ ← θ + (h/2) G^½ r,      χ ← χ + s (h/2) a² (r·r/d − 1)
    r ← e^(−χ h/2) (e^(−χ h/2) r + h G^½ ĝ(θ) + s √(2 a h) ξ),      ξ ~ N(0, I)
    θ ← θ + (h/2) G^½ r,      χ ← χ + s (h/2) a² (r·r/d − 1)

with h the step size, a the friction that matches the injected noise, χ the thermostat, d the number of weights, ĝ the
(estimated) gradient of log p(D, θ), G the preconditioner, and s = 1 but for the exploring parts of cycles, where s = 0:
no noise, and the thermostat waits. r is the momentum in coordinates in which its target is N(0, I) whatever G is.

With exact gradients the bias is of order h².

Reference: Chen, Ding & Carin (2015), On the convergence of stochastic gradient MCMC algorithms with high-order
integrators, section 3.2.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from weightscape.core import PRNGKey, Scalar, tree
from weightscape.draws import Sampled
from weightscape.inference.sampler import Notes, Sampler
from weightscape.inference.sgmcmc.minibatches import Minibatches
from weightscape.inference.sgmcmc.preconditioners import Preconditioner
from weightscape.inference.sgmcmc.schedules import StepSize
from weightscape.inference.sgmcmc.underdamped import kinetic_temperature
from weightscape.posterior import Position, Posterior


class State(NamedTuple):
    """Where the chain is, its momentum r, the thermostat χ, and what the preconditioner has learned."""

    position: Position
    momentum: Position
    thermostat: Scalar
    preconditioner: Any


class NoseHoover(Sampler):
    """One step on `posterior`; `minibatches` gives ĝ, `step_size` h and s, `preconditioner` G, `friction` is a."""

    posterior: Posterior
    minibatches: Minibatches
    step_size: StepSize
    preconditioner: Preconditioner
    friction: Float[Array, ""]

    def init(self, position: Position) -> State:
        """At rest, with the thermostat at the injected noise's own friction."""
        rest = jax.tree.map(jnp.zeros_like, position)
        return State(position, rest, self.friction, self.preconditioner.init(position))

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
        return state._replace(position=position, momentum=jax.tree.map(jnp.zeros_like, position))

    def _step(self, key: PRNGKey, state: State, index: Int[Array, ""], *, learns: bool) -> tuple[State, Notes]:
        key_batch, key_noise = jax.random.split(key)
        h, s = self.step_size.size(index), self.step_size.noise(index)
        middle = self._drift(state, index)
        gradient = self.minibatches.gradient(key_batch, self.posterior, middle.position)
        if learns:
            mean_gradient = tree.scale(1 / self.posterior.num_points, gradient)
            middle = middle._replace(preconditioner=self.preconditioner.learn(middle.preconditioner, mean_gradient))
        force = tree.scale(h, self.preconditioner.apply_root(middle.preconditioner, gradient))
        noise = tree.scale(s * jnp.sqrt(2 * self.friction * h), tree.normal_like(key_noise, gradient))
        damping = jnp.exp(-middle.thermostat * h / 2)
        kicked = tree.add(tree.scale(damping, middle.momentum), tree.add(force, noise))
        state = self._drift(middle._replace(momentum=tree.scale(damping, kicked)), index)
        notes = {
            "step_size": h,
            "noise": s,
            "is_accepted": tree.all_finite(state.position),
            "thermostat": state.thermostat,
            "kinetic_temperature": kinetic_temperature(state.momentum),
        }
        return state, notes

    def _drift(self, state: State, index: Int[Array, ""]) -> State:
        """Half a step of position and thermostat."""
        h, s = self.step_size.size(index), self.step_size.noise(index)
        velocity = self.preconditioner.apply_root(state.preconditioner, state.momentum)
        position = tree.add(state.position, tree.scale(h / 2, velocity))
        excess = kinetic_temperature(state.momentum) - 1
        thermostat = state.thermostat + s * (h / 2) * self.friction**2 * excess
        return state._replace(position=position, thermostat=thermostat)
