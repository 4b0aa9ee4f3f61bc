"""Ascent on the log density with Adam and a cosine step size.

    θ ← θ + η_i · Adam(∇ log p(D, θ)),      η_i = η (1 + cos(π i / n)) / 2

Gradients come from all points, or from B points drawn afresh at each step, scaled to be unbiased.
"""

import math
import time
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from weightscape.core import Plan, PRNGKey, Progress, Scalar, drive, map_chains, tree
from weightscape.core.checks import require, require_count, require_positive
from weightscape.core.keys import chain_keys
from weightscape.draws import Draws, Recorder, Sampled
from weightscape.inference.start import require_gradient, start_positions
from weightscape.posterior import Position, Posterior

_STEPS_PER_REPORT = 10


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


class Ascent(eqx.Module):
    """One optimisation step; `learning_rate` is η, `num_steps` is n, `batch_size` is B (None: all points)."""

    posterior: Posterior
    learning_rate: Array
    num_steps: Array
    batch_size: int | None = eqx.field(static=True)

    def init(self, position: Position) -> State:
        """Start at a position."""
        return State(position, optax.scale_by_adam().init(position))

    def __call__(self, key: PRNGKey, state: State, index: Array) -> tuple[State, Scalar]:
        """The next state, and the (estimated) log density at the old one."""
        log_density, gradient = jax.value_and_grad(self._objective)(state.position, key)
        direction, moments = optax.scale_by_adam().update(gradient, state.moments)
        rate = 0.5 * self.learning_rate * (1 + jnp.cos(jnp.pi * index / self.num_steps))
        position = tree.add(state.position, tree.scale(rate, direction))
        return State(position, moments), log_density

    def sampled(self, state: State) -> Sampled:
        """The parameters at a state, as a draw."""
        log_density = self.posterior.log_density(state.position)
        return Sampled(self.posterior.constrain(state.position), log_density, {})

    def _objective(self, position: Position, key: PRNGKey) -> Scalar:
        if self.batch_size is None:
            return self.posterior.log_density(position)
        indices = jax.random.randint(key, (self.batch_size,), 0, self.posterior.num_points)
        return self.posterior.log_density_estimate(position, indices)


def climb(
    key: PRNGKey, posterior: Posterior, training: Training, init: Draws | None, progress: Progress
) -> tuple[Sampled, dict[str, Any]]:
    """Train all members side by side; their end points with leading axes (member, 1), and facts of the run."""
    require_gradient(posterior, "An optimiser")
    began = time.monotonic()
    key_start, key_steps = jax.random.split(key)
    num_members = training.num_members
    ascent = Ascent(posterior, training.learning_rate, jnp.asarray(training.num_steps), training.batch_size)
    state = map_chains(ascent.init, start_positions(key_start, posterior, num_members, init))
    plan = Plan(math.ceil(training.num_steps / _STEPS_PER_REPORT), _STEPS_PER_REPORT, seconds=progress.seconds_left())
    num_steps = 0
    for chunk in drive(
        ascent,
        chain_keys(key_steps, num_members),
        state,
        plan,
        label="optimising",
        progress=progress,
        facts=lambda outputs: {"log density": float(np.mean(outputs[:, -1]))},
    ):
        state = chunk.state
        num_steps += chunk.outputs.shape[1] * _STEPS_PER_REPORT
    sampled = jax.tree.map(lambda leaf: np.asarray(leaf)[:, None], map_chains(ascent.sampled, state))
    _require_finite(sampled)
    return sampled, {"num_steps": num_steps, "seconds": time.monotonic() - began}


def record(posterior: Posterior, sampled: Sampled, facts: dict[str, Any], store: Any) -> Draws:
    """End points as Draws, in memory or on disk."""
    recorder = Recorder(posterior, store)
    recorder.add(sampled)
    return recorder.finish(facts, examine=False)


def _require_finite(sampled: Sampled) -> None:
    bad = np.flatnonzero(~np.isfinite(sampled.log_density[:, 0])).tolist()
    remedy = "Lower `learning_rate`, or check the scales of prior and likelihood."
    require(not bad, "Training must end at a finite log density", f"non-finite values in members {bad}", remedy)
