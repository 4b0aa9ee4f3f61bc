"""Moments of an optimiser's iterates, gathered as they pass by.

    θ̄_t = θ̄_{t−1} + (θ_t − θ̄_{t−1}) / t
    M_t = M_{t−1} + (θ_t − θ̄_{t−1}) ⊙ (θ_t − θ̄_t),        σ² = M_T / T
    D̂ = (θ_t − θ̄_t for the last K of the T iterates)

The variance comes from deviations (Welford 1962), not from a mean of squares less a squared mean, which loses all
digits where weights vary by little around large values.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from weightscape.core import PRNGKey, Scalar, Walk
from weightscape.core.layout import Layout
from weightscape.inference.point.optimise import Ascent
from weightscape.inference.point.optimise import State as AscentState
from weightscape.posterior import Position


class Moments(NamedTuple):
    """Of `num_taken` iterates: the mean θ̄, the sum M of squared deviations, and the last K deviations (in a ring)."""

    num_taken: Int[Array, ""]
    mean: Float[Array, " weight"]
    squares: Float[Array, " weight"]
    deviations: Float[Array, "rank weight"]

    @staticmethod
    def none(like: Float[Array, " weight"], rank: int) -> "Moments":
        """Moments of no iterates yet, of which the last `rank` deviations will be kept."""
        zeros = jnp.zeros_like(like)
        return Moments(jnp.zeros((), jnp.int32), zeros, zeros, jnp.zeros((rank, len(like)), like.dtype))

    def plus(self, iterate: Float[Array, " weight"]) -> "Moments":
        """Moments with one iterate more."""
        num_taken, rank = self.num_taken + 1, len(self.deviations)
        before = iterate - self.mean
        mean = self.mean + before / num_taken
        squares = self.squares + before * (iterate - mean)
        deviations = self.deviations.at[self.num_taken % rank].set(iterate - mean) if rank else self.deviations
        return Moments(num_taken, mean, squares, deviations)


class State(NamedTuple):
    """Where the ascent is, and the moments of the iterates taken so far."""

    ascent: AscentState
    moments: Moments


class Gathering(Walk):
    """An ascent that takes one iterate after every `every` steps, from step `first` on.

    - `ascent`: the steps.  `rank`: K.
    """

    ascent: Ascent
    rank: int = eqx.field(static=True)
    every: Int[Array, ""]
    first: Int[Array, ""]

    def init(self, position: Position) -> State:
        """Start at a position, with nothing taken."""
        return State(self.ascent.init(position), Moments.none(Layout.of(position).flatten(position), self.rank))

    def step(self, key: PRNGKey, state: State, index: Int[Array, ""]) -> tuple[State, Scalar]:
        """One step of the ascent; the notes are its log density."""
        ascent, log_density = self.ascent.step(key, state.ascent, index)
        since = index - self.first
        is_taken = (since >= 0) & ((since + 1) % self.every == 0)
        iterate = Layout.of(ascent.position).flatten(ascent.position)
        # A branch, not a choice: the index is the same for all members, so the moments are touched only when due.
        moments = jax.lax.cond(is_taken, Moments.plus, lambda moments, _: moments, state.moments, iterate)
        return State(ascent, moments), log_density

    def observe(self, state: State, notes: Scalar) -> Scalar:
        return notes

    def rows(self) -> tuple[Array, ...]:
        return self.ascent.rows()
