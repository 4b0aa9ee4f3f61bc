"""Training of a guide: ascent on the evidence lower bound with Adam and a cosine step size.

    φ ← φ + η_i · Adam(∇ ELBO(φ)),      η_i = η (1 + cos(π i / n)) / 2

A stored run that was killed goes on in the same bits; one that was finished is loaded.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from weightscape.core import Plan, PRNGKey, Progress, Scalar, Walk, drive
from weightscape.core.checks import require, require_count, require_positive
from weightscape.core.facts import Facts
from weightscape.core.keys import chain_keys
from weightscape.draws import Place, Recorder
from weightscape.inference.approximation import Approximation
from weightscape.inference.approximation_run import finished_approximation, keep_approximation
from weightscape.inference.evidence import LogEvidence
from weightscape.inference.method import Circumstances, Method, open_recorder, settings
from weightscape.inference.start import require_gradient
from weightscape.inference.variational.elbo import Elbo, evaluate
from weightscape.inference.variational.guide import Guide, Vector
from weightscape.inference.variational.start import start_vector

_STEPS_PER_REPORT = 10
_TRAINING = "training"


class Schedule(NamedTuple):
    """How long and how fast: n steps from the rate η; the divergence counts fully after `kl_warmup` steps."""

    num_steps: int
    learning_rate: Array
    kl_warmup: int = 0

    def check(self, method: str) -> None:
        """Raise where a setting of `method` makes no sense."""
        require_count(f"`num_steps` of {method}", self.num_steps)
        require_positive(f"`learning_rate` of {method}", self.learning_rate)
        require_count(f"`kl_warmup` of {method}", self.kl_warmup, least=0)
        asked = f"`kl_warmup` of {method} must be below its `num_steps`"
        require(self.kl_warmup < self.num_steps, asked, self.kl_warmup, "Train for longer or warm up faster.")


class Fit(NamedTuple):
    """What is trained, towards what, and what comes of it.

    - `elbo`: the objective.  `schedule`: the ascent.
    - `guide_at`: the guide to start with, around a vector. All but its floating-point arrays must not depend on that.
    - `finish`: the approximation that a trained guide is, given its evidence and its facts.
    - `num_evidence_draws`: draws for the final value of the bound.
    """

    elbo: Elbo
    schedule: Schedule
    guide_at: Callable[[Vector], Guide]
    finish: Callable[[Guide, LogEvidence, Facts], Approximation]
    num_evidence_draws: int


class State(NamedTuple):
    """The numbers of the guide and Adam's moments."""

    numbers: Guide
    moments: Any


class Climb(Walk):
    """One step of the ascent; `rest` is all of the guide that is not trained."""

    elbo: Elbo
    rest: Guide
    learning_rate: Array
    num_steps: Array
    kl_warmup: Array

    def step(self, key: PRNGKey, state: State, index: Array) -> tuple[State, Scalar]:
        """The next state, and the (estimated) objective at the old one."""
        objective = lambda numbers: self.elbo(key, eqx.combine(numbers, self.rest), self._kl_weight(index))
        value, gradient = jax.value_and_grad(objective)(state.numbers)
        direction, moments = _adam().update(gradient, state.moments)
        rate = 0.5 * self.learning_rate * (1 + jnp.cos(jnp.pi * jnp.minimum(index / self.num_steps, 1.0)))
        numbers = jax.tree.map(lambda old, d: old + rate.astype(old.dtype) * d, state.numbers, direction)
        return State(numbers, moments), value

    def observe(self, state: State, notes: Scalar) -> Scalar:
        return notes

    def rows(self) -> tuple[Array, ...]:
        return self.elbo.posterior.rows()

    def _kl_weight(self, index: Array) -> Scalar:
        """From 0 to 1 over `kl_warmup` steps; 1 at once where there are none."""
        share = jnp.minimum(index / jnp.maximum(self.kl_warmup, 1), 1.0)
        return jnp.where(self.kl_warmup > 0, share, 1.0)


def train_guide(key: PRNGKey, method: Method, fit: Fit, around: Circumstances) -> Approximation:
    """Train, measure the bound on all data, and wrap up; a stored run that was finished is loaded."""
    posterior, layout = fit.elbo.posterior, fit.elbo.layout
    require_gradient(posterior, type(method).__name__)
    key_start, key_steps, key_evidence = jax.random.split(key, 3)
    template = fit.guide_at(layout.flatten(posterior.start_position(key_start)))
    fit.elbo.check(template)
    finished = finished_approximation(key, method, posterior, around)
    if finished is not None:
        return finished
    with open_recorder(key, method, posterior, around) as recorder:
        place = recorder.resumed(lambda position: _begin(template), 1)
        if place is None:
            vector = start_vector(key_start, posterior, layout, around.init, around.progress)
            place = Place(_TRAINING, 0, jax.tree.map(lambda leaf: leaf[None], _begin(fit.guide_at(vector))))
        place = _train(key_steps, fit, template, place, recorder, around.progress)
    guide = _guide_of(place, template)
    estimate = evaluate(key_evidence, posterior, layout, guide, fit.num_evidence_draws)
    approximation = fit.finish(guide, estimate, _facts(method, fit, place, recorder.seconds))
    keep_approximation(key, method, approximation, around)
    return approximation


def _begin(guide: Guide) -> State:
    numbers = eqx.filter(guide, eqx.is_inexact_array)
    return State(numbers, _adam().init(numbers))


def _train(key: PRNGKey, fit: Fit, template: Guide, place: Place, recorder: Recorder, progress: Progress) -> Place:
    rest = eqx.filter(template, eqx.is_inexact_array, inverse=True)
    num_steps, learning_rate, kl_warmup = fit.schedule
    climb = Climb(fit.elbo, rest, learning_rate, jnp.asarray(num_steps), jnp.asarray(kl_warmup))
    plan = Plan(
        math.ceil(num_steps / _STEPS_PER_REPORT),
        _STEPS_PER_REPORT,
        seconds=progress.seconds_left(),
        done=place.done,
        num_shards=fit.elbo.posterior.num_shards,
    )
    shown = lambda outputs: {"ELBO": float(np.mean(outputs))}
    for chunk in drive(climb, chain_keys(key, 1), place.state, plan, label=_TRAINING, progress=progress, facts=shown):
        place = Place(_TRAINING, chunk.done, chunk.state)
        recorder.add(None, place)
    return place


def _guide_of(place: Place, template: Guide) -> Guide:
    # Through the host: arrays that still lie on the run's mesh would not go together with those of other runs.
    numbers = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[0]), place.state.numbers)
    return eqx.combine(numbers, eqx.filter(template, eqx.is_inexact_array, inverse=True))


def _facts(method: Method, fit: Fit, place: Place, seconds: float) -> Facts:
    elbo, posterior = fit.elbo, fit.elbo.posterior
    num_steps = place.done * _STEPS_PER_REPORT
    powers = {"likelihood_power": float(posterior.likelihood_power), "prior_power": float(posterior.prior_power)}
    told = {"kl": elbo.kl.name, "kl_warmup": fit.schedule.kl_warmup, **elbo.estimator.facts(posterior, elbo.layout)}
    complete = num_steps >= fit.schedule.num_steps
    return Facts(**settings(method), **powers, **told, num_steps=num_steps, seconds=seconds, complete=complete)


def _adam() -> optax.GradientTransformation:
    # Gradients shrink a hundredfold on the way to the optimum, and with the usual memory of a thousand steps the last
    # ones would be measured by the first: variances of a badly scaled linear model then end wrong by a factor of 3.
    return optax.scale_by_adam(b2=0.99)
