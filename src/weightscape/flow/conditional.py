"""The targets that may have led to a point of a path, and Hamiltonian steps among them.

    p(x₁ | x_t) ∝ N(x₁; μ, s²) L(x₁)          μ = b x_t / σ²,   s = a / σ,   σ² = a² + b²

In x₁ = μ + s u, with momentum m y and mass m = 1 + s² λ, λ a curvature of −log L along some axes, a step is

    y ← y + f tan ½h,      (u, y) turned by h,      y ← y + f tan ½h          f = (s ∇ log L + (m − 1) u) / m

It keeps volumes, can be undone by a step of −h, and keeps H = −log L(x₁) + ½ u² + ½ m y² up to h². It is the exact
motion where L is a normal of precision λ: f is then constant, and turns are around the mean of the targets, which is
what the tangent is for. Nothing in it is singular, at times 0 and 1 included.

On the way from a normal to these targets (`landing`) log L is β log L(x₁) + (1 − β) ĝ·(x₁ − μ), and λ is β λ.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.types import Scalar
from weightscape.flow.target import Target


class Stiffness(NamedTuple):
    """λ along each axis, and the axes; None for those of the weights."""

    values: Float[Array, " axis"]
    axes: Float[Array, "weight axis"] | None = None

    def along(self, vector: Float[Array, " weight"]) -> Float[Array, " axis"]:
        """The vector's coordinates."""
        return vector if self.axes is None else vector @ self.axes

    def vector(self, coordinates: Float[Array, " axis"]) -> Float[Array, " weight"]:
        """The vector with these coordinates."""
        return coordinates if self.axes is None else self.axes @ coordinates


class State(NamedTuple):
    """u and y in the coordinates of the axes, log L and its gradient."""

    u: Float[Array, " axis"]
    y: Float[Array, " axis"]
    log_likelihood: Scalar
    gradient: Float[Array, " weight"]


class Conditional(NamedTuple):
    """p(x₁ | x_t), with μ = `middle` and s = `scale`; β = `power` and ĝ = `slope` lead to it."""

    target: Target
    stiffness: Stiffness
    middle: Float[Array, " weight"]
    scale: Scalar
    power: Scalar | float = 1.0
    slope: Float[Array, " weight"] | float = 0.0

    @property
    def mass(self) -> Float[Array, " axis"]:
        """m."""
        return 1 + self.power * self.scale**2 * self.stiffness.values

    def place(self, u: Float[Array, " axis"]) -> Float[Array, " weight"]:
        """x₁."""
        return self.middle + self.scale * self.stiffness.vector(u)

    def state(self, u: Float[Array, " axis"], y: Float[Array, " axis"]) -> State:
        """The state there."""
        return State(u, y, *jax.value_and_grad(self.target.relative)(self.place(u)))

    def step(self, state: State, step_size: Scalar) -> State:
        """The state after a step of h = `step_size`."""
        cosine, sine, kick = jnp.cos(step_size), jnp.sin(step_size), jnp.tan(step_size / 2)
        y = state.y + kick * self._force(state)
        new = self.state(cosine * state.u + sine * y, cosine * y - sine * state.u)
        return new._replace(y=new.y + kick * self._force(new))

    def energy(self, state: State) -> Scalar:
        """H."""
        log_likelihood = self.power * state.log_likelihood + (1 - self.power) * self.tangent(state.u)
        return -log_likelihood + 0.5 * jnp.sum(state.u**2) + 0.5 * jnp.sum(self.mass * state.y**2)

    def tangent(self, u: Float[Array, " axis"]) -> Scalar:
        """ĝ·(x₁ − μ)."""
        return jnp.sum(self.slope * (self.scale * self.stiffness.vector(u)))

    def _force(self, state: State) -> Float[Array, " axis"]:
        gradient = self.power * state.gradient + (1 - self.power) * self.slope
        return (self.scale * self.stiffness.along(gradient) + (self.mass - 1) * state.u) / self.mass
