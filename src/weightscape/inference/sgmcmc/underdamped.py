"""Underdamped Langevin dynamics in a symmetric splitting: the chain behind SGHMC.

    θ ← θ + (h/2) G^½ r
    r ← ρ r + κ G^½ ĝ(θ) + s √(1 − ρ² − κ² G V̂) ξ,      ρ = e^(−c h),  κ = h (1 + ρ)/2,  ξ ~ N(0, I)
    θ ← θ + (h/2) G^½ r

with h the step size, c the friction, ĝ the (estimated) gradient of log p(D, θ), V̂ an estimate of its variance, G the
preconditioner, and s = 1 but for the exploring parts of cycles, where s = 0. r is the momentum in coordinates in which
its target is N(0, I) whatever G is. It is never redrawn: it goes on from step to step, and forgets at the rate c.

The middle line is half a kick, the exact solution of dr = −c r dt + √(2c) dW over h, and half a kick. With exact
gradients the bias is of order h², and on a Gaussian target positions have none; gradient noise that V̂ leaves out adds
one of order h. Where κ² G V̂ exceeds 1 − ρ², nothing is injected, and the kinetic temperature (the mean of r², 1 on
target) shows the excess.

Reference: Leimkuhler & Matthews (2015), Molecular dynamics, section 7.3 (ABOBA).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from weightscape.core import PRNGKey, Scalar, tree
from weightscape.draws import Sampled
from weightscape.inference.sampler import Notes, Sampler
from weightscape.inference.sgmcmc.gradient_noise import GradientNoise
from weightscape.inference.sgmcmc.minibatches import Minibatches
from weightscape.inference.sgmcmc.preconditioners import Preconditioner
from weightscape.inference.sgmcmc.schedules import StepSize
from weightscape.posterior import Position, Posterior


class State(NamedTuple):
    """Where the chain is, its momentum r, and what preconditioner and gradient noise have learned."""

    position: Position
    momentum: Position
    preconditioner: Any
    gradient_noise: Any


class Underdamped(Sampler):
    """One step on `posterior`.

    `minibatches` gives ĝ, `step_size` h and s, `preconditioner` G, `gradient_noise` V̂; `friction` is c.
    """

    posterior: Posterior
    minibatches: Minibatches
    step_size: StepSize
    preconditioner: Preconditioner
    gradient_noise: GradientNoise
    friction: Float[Array, ""]

    def init(self, position: Position) -> State:
        """At rest; the noise brings the momentum to its temperature within about 1/c of time."""
        rest = jax.tree.map(jnp.zeros_like, position)
        return State(position, rest, self.preconditioner.init(position), self.gradient_noise.init(position))

    def adapt(self, key: PRNGKey, state: State, index: Int[Array, ""]) -> tuple[State, Notes]:
        """Step, and learn G and V̂ from the step's gradient."""
        key_batch, key_noise = jax.random.split(key)
        middle = self._drift(state, index)
        gradient, square = self.gradient_noise.gradient(key_batch, self.minibatches, self.posterior, middle.position)
        learned = self.gradient_noise.learn(state.gradient_noise, square)
        middle = self._precondition(middle._replace(gradient_noise=learned), gradient)
        return self._finish(key_noise, middle, gradient, index)

    def settle(self, state: State) -> State:
        return state._replace(preconditioner=self.preconditioner.settle(state.preconditioner))

    def move(self, key: PRNGKey, state: State, index: Int[Array, ""]) -> tuple[State, Notes]:
        key_batch, key_noise = jax.random.split(key)
        middle = self._drift(state, index)
        gradient = self.minibatches.gradient(key_batch, self.posterior, middle.position)
        if not self.preconditioner.is_fixed:
            middle = self._precondition(middle, gradient)
        return self._finish(key_noise, middle, gradient, index)

    def observe(self, state: State, notes: Notes) -> Sampled:
        """The draw, with the log density of all points: computed for kept draws only."""
        log_density = self.posterior.log_density(state.position)
        return Sampled(self.posterior.constrain(state.position), log_density, notes)

    def position(self, state: State) -> Position:
        return state.position

    def place(self, state: State, position: Position) -> State:
        return state._replace(position=position, momentum=jax.tree.map(jnp.zeros_like, position))

    def _drift(self, state: State, index: Int[Array, ""]) -> State:
        """θ ← θ + (h/2) G^½ r."""
        velocity = self.preconditioner.apply_root(state.preconditioner, state.momentum)
        return state._replace(position=tree.add(state.position, tree.scale(self.step_size.size(index) / 2, velocity)))

    def _precondition(self, state: State, gradient: Position) -> State:
        mean_gradient = tree.scale(1 / self.posterior.num_points, gradient)
        return state._replace(preconditioner=self.preconditioner.learn(state.preconditioner, mean_gradient))

    def _finish(self, key: PRNGKey, middle: State, gradient: Position, index: Int[Array, ""]) -> tuple[State, Notes]:
        """The new momentum, and the second drift with it."""
        h, s = self.step_size.size(index), self.step_size.noise(index)
        rho = jnp.exp(-self.friction * h)
        kappa = h * (1 + rho) / 2
        force = tree.scale(kappa, self.preconditioner.apply_root(middle.preconditioner, gradient))
        noise = self._noise(key, middle, kappa, -jnp.expm1(-2 * self.friction * h))
        momentum = tree.add(tree.scale(rho, middle.momentum), tree.add(force, tree.scale(s, noise)))
        state = self._drift(middle._replace(momentum=momentum), index)
        notes = {
            "step_size": h,
            "noise": s,
            "is_accepted": tree.all_finite(state.position),
            "kinetic_temperature": kinetic_temperature(momentum),
        }
        return state, notes

    def _noise(self, key: PRNGKey, state: State, kappa: Scalar, variance: Scalar) -> Position:
        """√(1 − ρ² − κ² G V̂) ξ, where `variance` is 1 − ρ²."""
        known = self.gradient_noise.variance(state.gradient_noise, state.position)
        known = tree.scale(kappa**2, self.preconditioner.apply(state.preconditioner, known))
        injected = lambda draw, v: jnp.sqrt(jnp.maximum(variance - v, 0)) * draw
        return jax.tree.map(injected, tree.normal_like(key, state.position), known)


def kinetic_temperature(momentum: Position) -> Scalar:
    """The mean of r² over weights: 1 where the chain has the target's temperature."""
    return tree.dot(momentum, momentum) / tree.size(momentum)
