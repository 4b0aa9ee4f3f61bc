"""Solving dx/dt = v(t, x) on a manifold, without ever leaving it.

    x = exp_{x_i}(y),      dy/dt = (d exp_{x_i})_y⁻¹ v(t, exp_{x_i}(y)),      y = 0 at the step's beginning

Within a step the equation is taken to the tangent space at x_i, which is flat, solved there by any scheme, and brought
back. With the exact inverse of d exp it is the same equation, so the order of the error is that of the scheme. Euler's
scheme gives x_{i+1} = exp_{x_i}(h v).

Reference: Munthe-Kaas (1999), High order Runge-Kutta methods on manifolds, where a group acts in place of exp.
"""

import math
from functools import partial

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.types import PRNGKey, Scalar
from weightscape.flow.paths import Path
from weightscape.flow.transport import FixedSteps, Rate, Solver, Velocity, carry
from weightscape.geometry import Manifold


class ExpMapSteps(Solver):
    """The steps of `steps`, each in the tangent space of `manifold` where it begins.

    Velocities must be tangent, and a step shorter than half a great circle.
    """

    manifold: Manifold
    steps: FixedSteps = eqx.field(default_factory=FixedSteps)

    def draw(
        self,
        key: PRNGKey,
        path: Path,
        velocity: Velocity,
        start: Float[Array, " weight"],
        reach: Float[Array, " weight"] | float = math.inf,
    ) -> Float[Array, " weight"]:
        return carry(self, velocity, start)

    def solve(
        self, velocity: Velocity, x: Float[Array, " weight"], *, first: float | Scalar, last: float | Scalar
    ) -> Float[Array, " weight"]:
        return self.steps.solve_by(partial(self._leg, velocity), x, first=first, last=last)

    def integrate(
        self, velocity: Velocity, rate: Rate, x: Float[Array, " weight"], *, first: float, last: float
    ) -> tuple[Float[Array, " weight"], Float[Array, " estimate"]]:
        return self.steps.integrate_by(partial(self._leg, velocity), rate, x, first=first, last=last)

    def _leg(self, velocity: Velocity, x: Array, first: Scalar, last: Scalar, num_steps: Scalar) -> Array:
        pace, count = self.steps.by_place(velocity), jnp.ceil(num_steps).astype(int)
        length = jnp.asarray((last - first) / count, x.dtype)
        first = jnp.asarray(first, x.dtype)
        with jax.default_matmul_precision("highest"):
            return jax.lax.fori_loop(0, count, lambda i, x: self._step(pace, x, first + i * length, length), x)

    def _step(self, pace: Velocity, x: Array, s: Scalar, length: Scalar) -> Array:
        """From s to s + length. What rounding takes the point off the manifold is taken back."""
        pulled = lambda s, y, _: self.manifold.pull_back(x, y, pace(s, self.manifold.exp(x, y)))
        term, still, scheme = diffrax.ODETerm(pulled), jnp.zeros_like(x), self.steps.scheme
        memory = scheme.init(term, s, s + length, still, None)
        y, *_ = scheme.step(term, s, s + length, still, None, memory, made_jump=False)
        return self.manifold.nearest(self.manifold.exp(x, y))
