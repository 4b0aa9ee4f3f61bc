"""The last part of a path, from a point to one of the targets that may have led there, by annealing.

Late on a path nearly all is said about its target, and a model has to be right about the rest to a fraction of a nat. A
Markov chain is better at that: the targets p(x₁ | x_t) ∝ N(x₁; μ, s²) L(x₁) (`conditional`) are narrow and close to
normal. From the normal that has their mean, by what the pull G at x_t says of it, β is raised from 0 to 1 in M steps

    π_β(x₁) = N(x₁; μ, s²) exp( β log L(x₁) + (1 − β) (G·(x₁ − μ) − ½ s² ‖G‖²) )        π_0 = N(μ + s² G, s²)

    log w = Σ_j (β_j − β_{j−1}) ( log L(x) − G·(x − μ) + ½ s² ‖G‖² )                     x drawn before the move at β_j

with a transition of HMC that leaves π_β as it is at each β. E[w] = ∫ N(x₁; μ, s²) L(x₁) dx₁, what the path lacks in its
weight, for every G, number of steps and step size. Backwards, from a target down to β = 0, the same sum is the log
weight of the reversed way, so that draws of a posterior can be weighed too.

Reference: Neal (2001), Annealed importance sampling.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from weightscape.core.checks import require, require_count, require_positive
from weightscape.core.numbers import number
from weightscape.core.types import PRNGKey, Scalar
from weightscape.flow.conditional import Conditional, State

_JITTER = 0.2
"""Steps are up to this share shorter or longer, so that no trajectory closes on itself."""


class Landed(NamedTuple):
    """A target, the log weight of the way there, and the mean acceptance on it."""

    target: Float[Array, " weight"]
    log_weight: Scalar
    acceptance: Scalar


class Landing(eqx.Module):
    """How the last part of a path is gone.

    - `time`: where it begins; before it the model leads. The better the model the later.
    - `num_levels`: M; the divergence falls as 1/M.  `num_leapfrog`: steps of each trajectory.
    - `step_size`: of a step, as an angle; 2π is a full turn. `tuned_landing` finds one.
    - `bend`: β_j = (j / M)^bend; above 1 more of the steps are near the normal.
    """

    time: Scalar = eqx.field(default=0.6, converter=number)
    num_levels: int = eqx.field(static=True, default=128)
    num_leapfrog: int = eqx.field(static=True, default=8)
    step_size: Scalar = eqx.field(default=0.12, converter=number)
    bend: Scalar = eqx.field(default=1.5, converter=number)

    def __check_init__(self):
        require_count("`num_levels` of Landing", self.num_levels)
        require_count("`num_leapfrog` of Landing", self.num_leapfrog)
        require_positive("`step_size` of Landing", self.step_size)
        require_positive("`bend` of Landing", self.bend)
        inside = bool(0 < self.time < 1)
        require(inside, "`time` of Landing must lie between 0 and 1", float(self.time), "Pass 0.6, say.")

    @property
    def num_gradients(self) -> int:
        """Gradients of the likelihood that one landing takes."""
        return self.num_levels * self.num_leapfrog + 1

    @property
    def facts(self) -> dict[str, float | int]:
        """The settings, as they are stored."""
        numbers = {"time": self.time, "step_size": self.step_size, "bend": self.bend}
        counts = {"num_levels": self.num_levels, "num_leapfrog": self.num_leapfrog}
        return {**counts, **{name: float(value) for name, value in numbers.items()}}

    def down_to(self, key: PRNGKey, targets: Conditional) -> Landed:
        """A draw that was led from the normal to the targets; `targets.slope` is G."""
        key_start, key_moves = jax.random.split(key)
        noise = jax.random.normal(key_start, targets.middle.shape, targets.middle.dtype)
        start = targets.stiffness.along(targets.scale * targets.slope + noise)
        return self._walked(key_moves, targets, start, is_forward=True)

    def back_from(self, key: PRNGKey, targets: Conditional, target: Float[Array, " weight"]) -> Landed:
        """The way back, from a draw of the targets to the normal; its end is a draw of the latter."""
        start = targets.stiffness.along((target - targets.middle) / targets.scale)
        return self._walked(key, targets, start, is_forward=False)

    def _walked(self, key: PRNGKey, targets: Conditional, u: Float[Array, " axis"], *, is_forward: bool) -> Landed:
        powers = (jnp.arange(self.num_levels + 1, dtype=u.dtype) / self.num_levels) ** self.bend.astype(u.dtype)
        lift = 0.5 * jnp.sum((targets.scale * targets.slope) ** 2)

        def level(carry: tuple[State, Scalar], index: Int[Array, ""]) -> tuple[tuple[State, Scalar], Scalar]:
            state, log_weight = carry
            here = targets._replace(power=powers[index + 1])
            gain = lambda state: (
                (powers[index + 1] - powers[index]) * (state.log_likelihood - targets.tangent(state.u) + lift)
            )
            moved, acceptance = self._moved(jax.random.fold_in(key, index), here, state)
            return (moved, log_weight + gain(state if is_forward else moved)), acceptance

        begun = (targets.state(u, jnp.zeros_like(u)), jnp.zeros((), u.dtype))
        (end, log_weight), acceptances = jax.lax.scan(level, begun, jnp.arange(self.num_levels), reverse=not is_forward)
        return Landed(targets.place(end.u), log_weight, jnp.mean(acceptances))

    def _moved(self, key: PRNGKey, targets: Conditional, state: State) -> tuple[State, Scalar]:
        """The state after a transition of HMC, and its acceptance."""
        key_momentum, key_step, key_accept = jax.random.split(key, 3)
        dtype = state.u.dtype
        y = jax.random.normal(key_momentum, state.u.shape, dtype) / jnp.sqrt(targets.mass)
        longer = jax.random.uniform(key_step, (), dtype, 1 - _JITTER, 1 + _JITTER)
        step_size, start = self.step_size.astype(dtype) * longer, state._replace(y=y)
        end = jax.lax.fori_loop(0, self.num_leapfrog, lambda _, now: targets.step(now, step_size), start)
        gain = targets.energy(start) - targets.energy(end)
        gain = jnp.where(jnp.isfinite(gain), gain, -jnp.inf)
        accepted = jnp.log(jax.random.uniform(key_accept, (), dtype)) < gain
        return jax.tree.map(lambda new, old: jnp.where(accepted, new, old), end, start), jnp.exp(jnp.minimum(gain, 0))
