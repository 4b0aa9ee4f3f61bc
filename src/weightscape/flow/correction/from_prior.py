"""From the prior to the posterior by raising the power of the likelihood: annealing that needs no approximation.

    π_β ∝ p(θ)^(1−β) p(D, θ)^β,      β from 0 to 1

At β = 0 draws are exact. Each stage raises β as far as the draws' weights allow, copies them by their weights, and
moves every copy by HMC at the new power (`moves`). While β is small chains travel everywhere; when they no longer do,
each mode has the share of the draws that its mass asks for. Chains that go straight to the posterior settle in the mode
in whose basin they start, whatever its mass. The evidence and its error are those of `anneal` and `stages`.

Reference: Neal (2001), Annealed importance sampling; Chopin (2002), A sequential particle filter method.
"""

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from weightscape.core import PRNGKey, Progress, Silent, default_progress
from weightscape.core.checks import require, require_count, require_fraction
from weightscape.core.facts import Facts
from weightscape.core.keys import require_key
from weightscape.draws import Draws, Header, Health, systematic
from weightscape.flow.correction.anneal import Annealed
from weightscape.flow.correction.climb import climbed
from weightscape.flow.correction.moves import moved
from weightscape.flow.correction.stages import log_mean, next_power, relative_error, stage_efficiency, stage_weights
from weightscape.inference import HMC, LogEvidence
from weightscape.posterior import Parameters, Position, Posterior

_MOST_RETUNED = 3


def annealed_from_prior(
    key: PRNGKey,
    posterior: Posterior,
    *,
    num_draws: int,
    num_transitions: int = 5,
    share: float = 0.5,
    kernel: HMC | None = None,
    progress: Progress | None = None,
) -> Annealed:
    """Draws of the posterior and its evidence, from draws of the prior.

    - `num_draws`: how many; the shares of modes have errors as from `effective_roots` independent draws.
    - `num_transitions`, `kernel`: of HMC at each power, after those that tune it; as for `moved`. All powers but the
      first go on with the step size of the last one, and tune it for three transitions at most.
    - `share`: the efficiency of each stage's weights; higher makes more stages and a smaller error.
    - `progress`: where its time is up, the last stage goes to β = 1 at once: its efficiency shows what that cost.

    Example:
    >>> start = annealed_from_prior(key, posterior, num_draws=1000)            # doctest: +SKIP
    >>> print(start.log_evidence, start.is_trusted)                            # doctest: +SKIP
    """
    require_key(key, "annealed_from_prior")
    require_count("`num_draws` of annealed_from_prior", num_draws, least=8)
    require_fraction("`share` of annealed_from_prior", share)
    key_start, key_stages = jax.random.split(key)
    walk = _Walk(posterior, num_transitions, share)
    course = _begin(key_start, posterior, num_draws, HMC(num_warmup=10) if kernel is None else kernel)

    def stage(course: _Course, *, is_last: bool) -> _Course:
        return _stage(jax.random.fold_in(key_stages, len(course.powers)), walk, course, is_last=is_last)

    return _finish(climbed("raising the power", course, stage, default_progress(progress)))


def prior_draws(key: PRNGKey, posterior: Posterior, num_draws: int) -> Draws:
    """Networks drawn from the prior, with their log p(D, θ)."""
    require_key(key, "prior_draws")
    require_count("`num_draws` of prior_draws", num_draws)
    params, log_density = _from_prior(posterior, jax.random.split(key, num_draws))
    one_chain = lambda leaf: np.asarray(leaf)[None]
    facts = Facts(method="prior")
    header = Header.of(posterior)
    return Draws(jax.tree.map(one_chain, params), one_chain(log_density), *header, health=Health(1), facts=facts)


class _Walk(NamedTuple):
    """What is the same at all stages."""

    posterior: Posterior
    num_transitions: int
    share: float

    def at(self, power: float) -> Posterior:
        """π_β: a power β of the likelihood, and of the prior what leads to its own power."""
        likelihood, prior = self.posterior.likelihood_power, self.posterior.prior_power
        return self.posterior.tempered(likelihood=power * likelihood, prior=1 + power * (prior - 1))


class _Course(NamedTuple):
    """How far a run has come: its draws with their first ancestors, log Ẑ so far, its error, and notes.

    - `kernel`: HMC's settings at the next power.
    """

    draws: Draws
    kernel: HMC
    roots: Int[np.ndarray, " draw"]
    log_evidence: float
    standard_error: float
    powers: tuple[float, ...]
    efficiencies: tuple[float, ...]
    acceptances: tuple[float, ...]
    num_gradients: int


def _begin(key: PRNGKey, posterior: Posterior, num_draws: int, kernel: HMC) -> _Course:
    draws = prior_draws(key, posterior, num_draws)
    return _Course(draws, kernel, np.arange(num_draws), 0.0, 0.0, (0.0,), (), (), 0)


def _stage(key: PRNGKey, walk: _Walk, course: _Course, *, is_last: bool) -> _Course:
    """Raise the power, copy by weight, move."""
    key_copies, key_moves = jax.random.split(key)
    log_weights = _log_weights(walk.posterior, course.draws)
    power = 1.0 if is_last else next_power(log_weights, course.powers[-1], walk.share)
    step = power - course.powers[-1]
    weights = stage_weights(log_weights, step)
    copied = systematic(float(jax.random.uniform(key_copies)), weights)
    copies, target, count = course.draws[:, copied], walk.at(power), walk.num_transitions
    now = moved(key_moves, target, copies, num_transitions=count, kernel=course.kernel, progress=Silent())
    return _Course(
        now.draws,
        _retuned(course.kernel, now.draws.facts["step_size"]),
        course.roots[copied],
        course.log_evidence + log_mean(log_weights, step),
        relative_error(weights, course.roots),
        (*course.powers, power),
        (*course.efficiencies, stage_efficiency(log_weights, step)),
        (*course.acceptances, float(now.acceptance.mean())),
        course.num_gradients + now.draws.facts["gradients"],
    )


def _finish(course: _Course) -> Annealed:
    evidence = LogEvidence(course.log_evidence, "annealed", course.standard_error)
    effective_roots = 1 / (course.standard_error**2 + 1 / len(course.roots))  # the variance of Ẑ / Z is 1/ESS − 1/N
    facts = Facts(
        method="annealed from the prior",
        log_evidence=dataclasses.asdict(evidence),
        num_stages=len(course.powers) - 1,
        effective_roots=effective_roots,
        gradients=course.num_gradients,
    )
    draws = dataclasses.replace(course.draws, info={}, facts=facts)
    return Annealed(draws, evidence, course.powers, course.efficiencies, course.acceptances, effective_roots)


def _retuned(kernel: HMC, step_size: float) -> HMC:
    """The kernel from where its step size has come to."""
    num_warmup = min(kernel.num_warmup, _MOST_RETUNED)
    return dataclasses.replace(kernel, step_size=jnp.asarray(step_size, kernel.step_size.dtype), num_warmup=num_warmup)


def _log_weights(posterior: Posterior, draws: Draws) -> Float[np.ndarray, " draw"]:
    """log w = log p(D, θ) − log p(θ): the log likelihood, for a posterior that is not tempered itself."""
    positions = jax.tree.map(lambda leaf: jnp.asarray(leaf)[0], draws.positions())
    log_weights = np.asarray(_ratios(posterior, positions), np.float64)
    broken = int(np.sum(np.isnan(log_weights) | (log_weights == np.inf)))
    remedy = "Check the model at draws of its prior."
    require(broken == 0, "Log likelihoods of draws must be finite", f"{broken} that are not", remedy)
    require(bool(np.isfinite(log_weights.max())), "Some draw must have a likelihood above zero", "none", remedy)
    return log_weights


@eqx.filter_jit
def _ratios(posterior: Posterior, positions: Position) -> Float[Array, " draw"]:
    return jax.vmap(lambda position: posterior.log_density(position) - posterior.log_prior(position))(positions)


@eqx.filter_jit
def _from_prior(posterior: Posterior, keys: Key[Array, " draw"]) -> tuple[Parameters, Float[Array, " draw"]]:
    positions = jax.vmap(posterior.sample_prior_position)(keys)
    return jax.vmap(posterior.constrain)(positions), jax.vmap(posterior.log_density)(positions)
