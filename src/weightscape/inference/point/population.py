"""A population: many networks trained apart, and several iterates of each run where they are asked for.

    θ ← θ + η_i · Adam(∇ log p(D, θ)),      η_i = η (1 + cos(π i / n)) / 2  for i < n,      η_i = η_last  after that

Each run is a chain of draws: one draw is the network at its end, several are iterates that Adam passes through at the
constant rate η_last. They are no draws from the posterior. Nothing but the optimiser says how often a network comes up,
and equivalent networks come up alike; what is learned from a population is a distribution of trained networks. Iterates
of one run are close to each other, so what is held out must be whole runs: `split_runs`.

Where weights shall not decay, train on the likelihood alone: `posterior.tempered(prior=0.0)`.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
from jaxtyping import Array, Float, Int

from weightscape.core import PRNGKey, registered, tree
from weightscape.core.checks import require, require_count, require_fraction
from weightscape.core.numbers import number
from weightscape.draws import Draws, Sampled
from weightscape.inference.chains import Schedule, run_chains
from weightscape.inference.method import Circumstances, Method
from weightscape.inference.point.optimise import Ascent, State, Training
from weightscape.inference.sampler import Notes, Sampler
from weightscape.inference.start import require_gradient
from weightscape.posterior import Position, Posterior


@registered("inference.Population")
class Population(Method):
    """Networks of `num_runs` runs from random starts, trained side by side; a run is a chain.

    - `num_draws`: networks of each run.  `every`: steps before each of them, after training.
    - `last_rate`: η_last; must be positive where there are several iterates.
    - `num_steps`, `learning_rate`: n and η of the cosine schedule.
    - `batch_size`: points in each gradient; None takes all.
    - `share_batches`: whether all runs take the same points at each step. One product then serves all of them, several
      times as fast on accelerators, and runs differ by their starts alone.
    """

    num_runs: int = eqx.field(static=True, default=100)
    num_draws: int = eqx.field(static=True, default=1)
    every: int = eqx.field(static=True, default=1)
    last_rate: Float[Array, ""] = eqx.field(default=0.0, converter=number)
    num_steps: int = eqx.field(static=True, default=2000)
    learning_rate: Float[Array, ""] = eqx.field(default=0.02, converter=number)
    batch_size: int | None = eqx.field(static=True, default=None)
    share_batches: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        Training(self.num_runs, self.num_steps, self.learning_rate, self.batch_size).check("Population")
        require_count("`num_draws` of Population", self.num_draws)
        require_count("`every` of Population", self.every)
        least, given = ("above 0", "several") if self.num_draws > 1 else ("0 or above", "one")
        asked = f"`last_rate` of Population must be {least} where a run gives {given}"
        fits = self.last_rate > 0 or (self.last_rate == 0 and self.num_draws == 1)
        require(bool(fits), asked, self.last_rate, "Pass a rate such as 2e-3, for iterates that differ.")

    @property
    def num_chains(self) -> int:
        """How many starts a run needs."""
        return self.num_runs

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Draws:
        require_gradient(posterior, "Population")
        key, key_rows = jax.random.split(key) if self.share_batches else (key, None)
        training = Ascent(posterior, self.learning_rate, number(self.num_steps), self.batch_size, key_rows)
        # A cosine over infinitely many steps stays at its top.
        onwards = Ascent(posterior, self.last_rate, number(math.inf), self.batch_size, key_rows)
        schedule = Schedule(self.num_runs, self.num_draws, self.num_steps, self.every)
        return run_chains(key, self, _Optimiser(posterior, training, onwards), schedule, around)


class RunSplit(NamedTuple):
    """Networks to learn from, and those of other runs."""

    train: Draws
    held_out: Draws


def split_runs(draws: Draws, held_out: float = 0.2) -> RunSplit:
    """The last runs held out, a share `held_out` of them and at least one; runs are exchangeable as they are.

    Merged populations stand one after the other: split each of them, and merge the parts.
    """
    require_fraction("`held_out` of split_runs", held_out)
    asked, remedy = "A population that is split must have at least 2 runs", "Train more of them."
    require(draws.num_chains > 1, asked, draws.num_chains, remedy)
    first = min(draws.num_chains - 1, max(1, round((1 - held_out) * draws.num_chains)))
    return RunSplit(draws[:first], draws[first:])


class _Optimiser(Sampler):
    """An optimiser as the runner of chains sees it: `training` is its warm-up, `onwards` what iterates come from."""

    posterior: Posterior
    training: Ascent
    onwards: Ascent

    def init(self, position: Position) -> State:
        return self.training.init(position)

    def adapt(self, key: PRNGKey, state: State, index: Int[Array, ""]) -> tuple[State, Notes]:
        return _noted(self.training, key, state, index)

    def settle(self, state: State) -> State:
        return state

    def move(self, key: PRNGKey, state: State, index: Int[Array, ""]) -> tuple[State, Notes]:
        return _noted(self.onwards, key, state, index)

    def observe(self, state: State, notes: Notes) -> Sampled:
        return self.onwards.sampled(state)._replace(info=notes)

    def position(self, state: State) -> Position:
        return state.position

    def place(self, state: State, position: Position) -> State:
        return state._replace(position=position)


def _noted(ascent: Ascent, key: PRNGKey, state: State, index: Int[Array, ""]) -> tuple[State, Notes]:
    new, _ = ascent.step(key, state, index)
    return new, {"is_accepted": tree.all_finite(new.position)}
