"""Ascent on the log density with Adam and a cosine step size.

    θ ← θ + η_i · Adam(∇ log p(D, θ)),      η_i = η (1 + cos(π i / n)) / 2

Gradients come from all points, or from B points drawn afresh at each step, scaled to be unbiased.
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Key

from weightscape.core import Plan, PRNGKey, Progress, Scalar, Walk, drive, map_chains, tree
from weightscape.core.checks import require, require_count, require_positive
from weightscape.core.keys import chain_keys
from weightscape.draws import Draws, Place, Recorder, Sampled
from weightscape.inference.method import Circumstances, Method, open_recorder, settings
from weightscape.inference.start import require_gradient, start_positions
from weightscape.posterior import Position, Posterior

_STEPS_PER_REPORT = 10
_OPTIMISING = "optimising"
_OPTIMISED = "optimised"
"""The phase of a run whose members are recorded: one that was killed just then must not record them twice."""


class Training(NamedTuple):
    """How members are trained: how many, for n steps, with learning rate η, on batches of B points (None: all)."""

    num_members: int
    num_steps: int
    learning_rate: Array
    batch_size: int | None

    def check(self, method: str) -> None:
        """Raise where a setting of `method` makes no sense."""
        require_count(f"The number of members of {method}", self.num_members)
        require_count(f"`num_steps` of {method}", self.num_steps)
        require_positive(f"`learning_rate` of {method}", self.learning_rate)
        if self.batch_size is not None:
            require_count(f"`batch_size` of {method}", self.batch_size)


class State(NamedTuple):
    """The position and Adam's moments."""

    position: Position
    moments: Any


class Ascent(Walk):
    """One optimisation step; `learning_rate` is η, `num_steps` is n, `batch_size` is B (None: all points).

    - `key_rows`: what the points come from where all members take the same ones; None where each takes its own.
    """

    posterior: Posterior
    learning_rate: Array
    num_steps: Array
    batch_size: int | None = eqx.field(static=True)
    key_rows: PRNGKey | None = None

    def init(self, position: Position) -> State:
        """Start at a position."""
        return State(position, optax.scale_by_adam().init(position))

    def step(self, key: PRNGKey, state: State, index: Array) -> tuple[State, Scalar]:
        """The next state, and the (estimated) log density at the old one."""
        key_batch = key if self.key_rows is None else jax.random.fold_in(self.key_rows, index)
        log_density, gradient = jax.value_and_grad(self._objective)(state.position, key_batch)
        direction, moments = optax.scale_by_adam().update(gradient, state.moments)
        rate = 0.5 * self.learning_rate * (1 + jnp.cos(jnp.pi * index / self.num_steps))
        position = tree.add(state.position, tree.scale(rate, direction))
        return State(position, moments), log_density

    def observe(self, state: State, notes: Scalar) -> Scalar:
        return notes

    def rows(self) -> tuple[Array, ...]:
        return self.posterior.rows()

    def sampled(self, state: State) -> Sampled:
        """The parameters at a state, as a draw."""
        log_density = self.posterior.log_density(state.position)
        return Sampled(self.posterior.constrain(state.position), log_density, {})

    def _objective(self, position: Position, key: PRNGKey) -> Scalar:
        if self.batch_size is None:
            return self.posterior.log_density(position)
        indices = jax.random.randint(key, (self.batch_size,), 0, self.posterior.num_points)
        return self.posterior.log_density_estimate(position, indices)


def climb(key: PRNGKey, method: Method, posterior: Posterior, training: Training, around: Circumstances) -> Draws:
    """Train all members side by side; each ends as a chain of one draw. A stored run can be resumed."""
    require_gradient(posterior, type(method).__name__)
    key_start, key_steps = jax.random.split(key)
    ascent = Ascent(posterior, training.learning_rate, jnp.asarray(training.num_steps), training.batch_size)
    with open_recorder(key, method, posterior, around) as recorder:
        if recorder.has(1):
            return recorder.reload(None)
        place = recorder.resumed(ascent.init, training.num_members)
        if place is None:
            start = start_positions(key_start, posterior, training.num_members, around.init, around.progress)
            place = Place(_OPTIMISING, 0, map_chains(ascent.init, start))
        if place.phase == _OPTIMISING:
            keys = chain_keys(key_steps, training.num_members)
            place = _train(keys, ascent, place, training, recorder, around.progress)
            sampled = jax.tree.map(lambda leaf: np.asarray(leaf)[:, None], map_chains(ascent.sampled, place.state))
            _require_finite(sampled)
            recorder.add(sampled, place._replace(phase=_OPTIMISED))
    facts = {**settings(method), "num_steps": place.done * _STEPS_PER_REPORT, "seconds": recorder.seconds}
    return recorder.finish(facts, None)


def _train(
    keys: Key[Array, " member"],
    ascent: Ascent,
    place: Place,
    training: Training,
    recorder: Recorder,
    progress: Progress,
) -> Place:
    plan = Plan(
        math.ceil(training.num_steps / _STEPS_PER_REPORT),
        _STEPS_PER_REPORT,
        seconds=progress.seconds_left(),
        done=place.done,
        num_shards=ascent.posterior.num_shards,
    )
    shown = lambda outputs: {"log density": float(np.mean(outputs[:, -1]))}
    for chunk in drive(ascent, keys, place.state, plan, label=_OPTIMISING, progress=progress, facts=shown):
        place = Place(_OPTIMISING, chunk.done, chunk.state)
        recorder.add(None, place)
    return place


def _require_finite(sampled: Sampled) -> None:
    bad = np.flatnonzero(~np.isfinite(sampled.log_density[:, 0])).tolist()
    remedy = "Lower `learning_rate`, or check the scales of prior and likelihood."
    require(not bad, "Training must end at a finite log density", f"non-finite values in members {bad}", remedy)
