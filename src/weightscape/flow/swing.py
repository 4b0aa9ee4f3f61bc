"""The pull of a pair, averaged over a swing of its target: much of a regression's noise is gone before it starts.

The pull at x_t is a mean over all targets x₁ that may have led there (`pull`), and the target of a pair is one draw of
them. A Hamiltonian trajectory through that draw passes others (`conditional`). Its states weigh exp(−H), and the draw
has a random place among them, so the weighted mean of any function of x₁ has the same expectation as its value at the
draw, for every step size. The n + 1 states of a full turn, h = 2π / (n + 1), take out of it what a normal would have in
noise. Where steps are too long, the draw itself has all the weight.

Reference: Betancourt (2017), A conceptual introduction to Hamiltonian Monte Carlo, appendix A.3, for the weights.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from weightscape.core.types import PRNGKey, Scalar
from weightscape.flow.conditional import Conditional, State, Stiffness
from weightscape.flow.objective import Pair
from weightscape.flow.paths import Path
from weightscape.flow.target import Target

_MOST_AXES = 2048
_DRAWS_PER_AXIS = 8


class Sums(NamedTuple):
    """Sums over states, of weights relative to exp(`log_scale`): of 1, u and the gradient."""

    log_scale: Scalar
    weight: Scalar
    u: Float[Array, " axis"]
    gradient: Float[Array, " weight"]


class Swing(eqx.Module):
    """The mean of targets and gradients over a trajectory of `num_leapfrog` steps."""

    target: Target
    stiffness: Stiffness
    num_leapfrog: int = eqx.field(static=True)

    def __call__(self, key: PRNGKey, path: Path, time: Scalar, pair: Pair) -> Pair:
        """The pair with the means in place of its target and gradient; its x_t is that of the pair as it was."""
        at = path.coefficients(time)
        size = jnp.sqrt(at.a**2 + at.b**2)
        middle = at.b * (at.a * pair.source + at.b * pair.target) / size**2
        # From the pair, and not from the target less the middle, which agree in all their digits near time 1.
        u = self.stiffness.along((at.a * pair.target - at.b * pair.source) / size)
        targets = Conditional(self.target, self.stiffness, middle, at.a / size)
        sums = self._summed(key, targets, u)
        mean = targets.place(sums.u / sums.weight)
        return jax.lax.stop_gradient(pair._replace(target=mean, gradient=sums.gradient / sums.weight))

    def _summed(self, key: PRNGKey, targets: Conditional, u: Float[Array, " axis"]) -> Sums:
        """Over states before the start, as many as chance wants, and after it."""
        key_momentum, key_place = jax.random.split(key)
        y = jax.random.normal(key_momentum, u.shape, u.dtype) / jnp.sqrt(targets.mass)
        start, step_size = targets.state(u, y), 2 * math.pi / (self.num_leapfrog + 1)
        num_before = jax.random.randint(key_place, (), 0, self.num_leapfrog + 1)

        def step(carry: tuple[State, Sums], index: Int[Array, ""]) -> tuple[tuple[State, Sums], None]:
            state, sums = carry
            state = jax.tree.map(lambda here, there: jnp.where(index == num_before, there, here), state, start)
            state = targets.step(state, jnp.where(index < num_before, -step_size, step_size).astype(u.dtype))
            return (state, _plus(sums, state, targets.energy(start) - targets.energy(state))), None

        begun = Sums(jnp.zeros_like(start.log_likelihood), jnp.ones_like(start.log_likelihood), u, start.gradient)
        return jax.lax.scan(step, (start, begun), jnp.arange(self.num_leapfrog))[0][1]


def _plus(sums: Sums, state: State, log_weight: Scalar) -> Sums:
    """The sums with one more state; none with a state that is not finite."""
    log_weight = jnp.where(jnp.isfinite(log_weight), log_weight, -jnp.inf)
    highest = jnp.maximum(sums.log_scale, log_weight)
    old, new = jnp.exp(sums.log_scale - highest), jnp.exp(log_weight - highest)
    with_new = lambda total, value: old * total + jnp.where(new > 0, new * value, 0)
    return Sums(highest, old * sums.weight + new, with_new(sums.u, state.u), with_new(sums.gradient, state.gradient))


def stiffness_of(
    z: Float[np.ndarray, "draw weight"],
    gradients: Float[np.ndarray, "draw weight"],
    labels: Int[np.ndarray, " weight"],
) -> Stiffness:
    """The mean curvature of −log L over draws of a posterior: E[(g − z)(g − z)ᵀ] − 1, by the information equality.

    With few draws for each weight, or many weights, its diagonal only, the same for all weights of an orbit.

    - `gradients`: g = ∇ log L at the draws z.  `labels`: the orbit of each weight.
    """
    slopes = np.asarray(gradients, np.float64) - z
    dtype = jax.dtypes.canonicalize_dtype(z.dtype)
    num_draws, num_weights = z.shape
    if num_weights <= _MOST_AXES and num_draws >= _DRAWS_PER_AXIS * num_weights:
        values, axes = np.linalg.eigh(slopes.T @ slopes / num_draws)
        return Stiffness(jnp.asarray(np.maximum(values - 1, 0), dtype), jnp.asarray(axes, dtype))
    means = np.bincount(labels, np.mean(slopes**2, axis=0)) / np.bincount(labels)
    return Stiffness(jnp.asarray(np.maximum(means[labels] - 1, 0), dtype), None)
