"""Annealing: particles of an approximation q are led to the posterior by sequential Monte Carlo.

    π_β ∝ q^(1−β) p(D, ·)^β,      β from 0 to 1

It goes in stages. Each raises β as far as the particles' weights allow, copies particles by their weights, and moves
the copies apart by moves that leave π_β invariant. All happens in the base space of a transport z ↦ T(z) (`particles`),
where moves need densities alone. The means of the stages' weights multiply to an unbiased estimate of p(D), whatever
the moves do; its logarithm is biased low by half its squared standard error. `stages` says how powers are chosen and
how the error is known.

Reference: Del Moral, Doucet & Jasra (2006), Sequential Monte Carlo samplers, sections 3 and 4.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from weightscape.core import PRNGKey, Progress, default_progress, map_chains
from weightscape.core.batches import in_batches
from weightscape.core.checks import InputError, require, require_count, require_fraction
from weightscape.core.facts import Facts
from weightscape.core.keys import require_key
from weightscape.draws import Draws, Header, Health, systematic
from weightscape.flow.correction.climb import climbed
from weightscape.flow.correction.particles import Ground, Move, Particles, Start
from weightscape.flow.correction.stages import (
    log_mean,
    next_power,
    relative_error,
    stage_efficiency,
    stage_weights,
)
from weightscape.flow.correction.transport import Transport
from weightscape.inference import LogEvidence
from weightscape.posterior import Posterior

_WANTED_ACCEPTANCE = 0.3
_FIRST_LENGTH, _LEAST_LENGTH = 0.5, 1e-4
_GAIN = 2.0
_MOST_STAGES = 1000
_FEWEST_ROOTS = 50


class Annealed(NamedTuple):
    """Particles at the posterior, and what the way there says about p(D).

    - `draws`: the particles as one chain; copies that no move parted are equal.
    - `log_evidence`: log p(D) with its standard error, of the kind "annealed".
    - `powers`: β from 0 to 1.  `efficiencies`: of each stage's weights.  `acceptances`: of each stage's moves.
    - `effective_roots`: how many of the first particles the estimate rests on, (Σ S)² / Σ S² with S the weight of all
      descendants of one. Where it is below 50 neither the estimate nor its error can be trusted: `is_trusted`. Up to
      100 or so, where q lies beside the posterior rather than around it, the true error can be half as large again.
    """

    draws: Draws
    log_evidence: LogEvidence
    powers: tuple[float, ...]
    efficiencies: tuple[float, ...]
    acceptances: tuple[float, ...]
    effective_roots: float

    @property
    def is_trusted(self) -> bool:
        """Whether enough of the first particles count. Where few do, those that would count more were never drawn."""
        return self.effective_roots >= _FEWEST_ROOTS


def annealed(
    key: PRNGKey,
    posterior: Posterior,
    transport: Transport,
    *,
    num_particles: int,
    num_moves: int = 2,
    share: float = 0.5,
    batch_size: int = 256,
    progress: Progress | None = None,
) -> Annealed:
    """Draws of the posterior and its evidence, from a transport that comes near it.

    - `num_particles`: N.  `num_moves`: moves of each particle at each stage.
    - `share`: the efficiency of each stage's weights; higher makes more stages and a smaller error.
    - `batch_size`: particles that are pushed at once, which bounds memory.
    - `progress`: where its time is up, the last stage goes to β = 1 at once: its efficiency shows what that cost.

    Example:
    >>> result = annealed(key, posterior, transport, num_particles=1000)       # doctest: +SKIP
    >>> print(result.log_evidence)                                             # doctest: +SKIP
    """
    require_key(key, "annealed")
    require_count("`num_particles` of annealed", num_particles, least=2)
    require_count("`num_moves` of annealed", num_moves)
    require_count("`batch_size` of annealed", batch_size)
    require_fraction("`share` of annealed", share)
    key_start, key_stages = jax.random.split(key)
    walk = _Walk(Ground(posterior, transport), num_moves, share, min(batch_size, num_particles))
    course = _begin(key_start, walk, num_particles)

    def stage(course: _Course, *, is_last: bool) -> _Course:
        _require_progress(course)
        return _stage(jax.random.fold_in(key_stages, len(course.powers)), walk, course, is_last=is_last)

    return _finish(posterior, walk, climbed("annealing", course, stage, default_progress(progress)))


class _Walk(NamedTuple):
    """What is the same at all stages."""

    ground: Ground
    num_moves: int
    share: float
    batch_size: int


class _Course(NamedTuple):
    """How far a run has come: its particles with their first ancestors, log Ẑ so far, its error, and notes.

    - `length`: ρ of the next move.
    """

    particles: Particles
    roots: Int[np.ndarray, " particle"]
    log_evidence: float
    standard_error: float
    length: float
    powers: tuple[float, ...]
    efficiencies: tuple[float, ...]
    acceptances: tuple[float, ...]


def _begin(key: PRNGKey, walk: _Walk, num_particles: int) -> _Course:
    particles = in_batches(Start(walk.ground), walk.batch_size, jax.random.split(key, num_particles))
    log_weights = particles.log_weights()
    broken = int(np.sum(np.isnan(log_weights) | (log_weights == np.inf)))
    remedy = "Check the transport, or train it for longer."
    require(broken == 0, "Log weights of particles must be finite", f"{broken} that are not", remedy)
    require(bool(np.isfinite(log_weights.max())), "Some particle must have a weight above zero", "none", remedy)
    return _Course(particles, np.arange(num_particles), 0.0, 0.0, _FIRST_LENGTH, (0.0,), (), ())


def _stage(key: PRNGKey, walk: _Walk, course: _Course, *, is_last: bool) -> _Course:
    """Raise the power, copy by weight, move."""
    key_copies, key_moves = jax.random.split(key)
    log_weights = course.particles.log_weights()
    power = 1.0 if is_last else next_power(log_weights, course.powers[-1], walk.share)
    step = power - course.powers[-1]
    weights = stage_weights(log_weights, step)
    copied = systematic(float(jax.random.uniform(key_copies)), weights)
    particles, length, acceptance = _move(key_moves, walk, course.particles.chosen(copied), power, course.length)
    return _Course(
        particles,
        course.roots[copied],
        course.log_evidence + log_mean(log_weights, step),
        relative_error(weights, course.roots),
        length,
        (*course.powers, power),
        (*course.efficiencies, stage_efficiency(log_weights, step)),
        (*course.acceptances, acceptance),
    )


def _move(
    key: PRNGKey, walk: _Walk, particles: Particles, power: float, length: float
) -> tuple[Particles, float, float]:
    """Some moves of all particles; after each, ρ goes towards the wanted acceptance. Also the mean acceptance."""
    acceptances = []
    for i in range(walk.num_moves):
        keys = jax.random.split(jax.random.fold_in(key, i), len(particles.z))
        move = Move(walk.ground, jnp.asarray(power), jnp.asarray(length))
        particles, acceptance = in_batches(move, walk.batch_size, keys, particles)
        acceptances.append(float(acceptance.mean()))
        grown = length * np.exp(_GAIN * (acceptances[-1] - _WANTED_ACCEPTANCE))
        length = float(np.clip(grown, _LEAST_LENGTH, 1.0))
    return particles, length, float(np.mean(acceptances))


def _finish(posterior: Posterior, walk: _Walk, course: _Course) -> Annealed:
    evidence = LogEvidence(course.log_evidence, "annealed", course.standard_error)
    num_stages, num_particles = len(course.powers) - 1, len(course.roots)
    effective_roots = 1 / (course.standard_error**2 + 1 / num_particles)  # the variance of Ẑ / Z is 1/ESS − 1/N
    facts = Facts(
        method="annealed",
        log_evidence=dataclasses.asdict(evidence),
        num_stages=num_stages,
        effective_roots=effective_roots,
        pushes=num_particles * (1 + num_stages * walk.num_moves),
    )
    params = map_chains(posterior.constrain, jax.tree.map(jnp.asarray, course.particles.position))
    draws = Draws(
        jax.tree.map(lambda leaf: np.asarray(leaf)[None], params),
        course.particles.log_density[None],
        *Header.of(posterior),
        health=Health(1),
        facts=facts,
    )
    return Annealed(draws, evidence, course.powers, course.efficiencies, course.acceptances, effective_roots)


def _require_progress(course: _Course) -> None:
    if len(course.powers) > _MOST_STAGES:
        raise InputError(
            f"Annealing must end within {_MOST_STAGES} stages, got to power {course.powers[-1]:.2g}. Train the "
            "transport for longer, or pass a lower `share`."
        )
