"""A sampler: the Markov chain behind every Monte-Carlo method, seen from the runner.

A chain goes through two phases. In warm-up `adapt` moves it and learns how to move (step size, mass, …); `settle`
fixes what was learned; from then on `move` leaves the target invariant (or as nearly as the method promises) and
`observe` turns states into draws. One type of state serves both phases, so that a run can be stored at any moment.
"""

import abc
from typing import Any

import equinox as eqx
from jaxtyping import Array, Int

from weightscape.core import PRNGKey, Walk
from weightscape.draws import Sampled
from weightscape.posterior import Position, Posterior

Notes = dict[str, Array]
"""What a person may want to know of a transition, by name.

Names that diagnostics know: `acceptance`, `is_accepted` (the chain moved), `is_divergent`, `energy`, `energy_error`
(that of the proposal), `step_size`, `num_leapfrog`.
"""


class Sampler(eqx.Module):
    """One chain on `posterior`; a state is any tree of arrays without random keys."""

    posterior: eqx.AbstractVar[Posterior]

    @abc.abstractmethod
    def init(self, position: Position) -> Any:
        """The state at a position, with nothing learned yet."""

    @abc.abstractmethod
    def adapt(self, key: PRNGKey, state: Any, index: Int[Array, ""]) -> tuple[Any, Notes]:
        """Transition `index` of warm-up: move, and learn from it."""

    @abc.abstractmethod
    def settle(self, state: Any) -> Any:
        """The state at the end of warm-up, with what was learned fixed from here on."""

    @abc.abstractmethod
    def move(self, key: PRNGKey, state: Any, index: Int[Array, ""]) -> tuple[Any, Notes]:
        """Transition `index` with fixed tuning; the index counts on from warm-up."""

    @abc.abstractmethod
    def observe(self, state: Any, notes: Notes) -> Sampled:
        """The draw at a state."""

    @abc.abstractmethod
    def position(self, state: Any) -> Position:
        """Where a state is."""

    @abc.abstractmethod
    def place(self, state: Any, position: Position) -> Any:
        """The state at another position, with the tuning it has."""


class WarmingUp(Walk):
    """The phase in which a sampler learns; its outputs are notes."""

    sampler: Sampler

    def step(self, key: PRNGKey, state: Any, index: Int[Array, ""]) -> tuple[Any, Notes]:
        return self.sampler.adapt(key, state, index)

    def observe(self, state: Any, notes: Notes) -> Notes:
        return notes

    def rows(self) -> tuple[Array, ...]:
        return self.sampler.posterior.rows()


class Sampling(Walk):
    """The phase that makes draws."""

    sampler: Sampler

    def step(self, key: PRNGKey, state: Any, index: Int[Array, ""]) -> tuple[Any, Notes]:
        return self.sampler.move(key, state, index)

    def observe(self, state: Any, notes: Notes) -> Sampled:
        return self.sampler.observe(state, notes)

    def rows(self) -> tuple[Array, ...]:
        return self.sampler.posterior.rows()
