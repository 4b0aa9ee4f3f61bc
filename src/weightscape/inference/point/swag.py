"""SWAG: a normal density fitted to the iterates of an optimiser that keeps moving.

    θ̄ = (1/T) Σ_t θ_t,       Σ = ½ (diag(σ²) + D̂ D̂ᵀ / (K − 1)),       σ² = (1/T) Σ_t θ_t² − θ̄²

After training, T iterates are taken at a constant learning rate, one every few steps; D̂ holds the deviations of the
last K from the running mean. With several members (multi-SWAG) the result is a mixture with one component each.

What moves the iterates is the noise of minibatches. Full-batch iterates stop at the mode and their spread says nothing,
so there must be a batch size; points are drawn with replacement, so that even B ≥ N is noisy. How far they move is
set by learning rate and batch size together and not by the posterior: SWAG's spread is a choice, to be judged by
scores, and it has no evidence of its own (`evidence(key, num_draws)` weighs draws and shows how far it is off).

Where we differ from the paper: iterates are Adam's at a constant rate, which goes on with the moments of the training.
Its steps have the units of the weights, so that one rate serves many problems; those of plain SGD on log p(D, θ) have
the units of an inverse curvature, and diverge where a fixed rate exceeds 2 over the largest one.

References: Maddox, Garipov, Izmailov, Vetrov & Wilson (2019), A simple baseline for Bayesian uncertainty in deep
learning, algorithm 1; Wilson & Izmailov (2020), Bayesian deep learning and a probabilistic perspective of
generalization.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from weightscape.core import Plan, PRNGKey, Progress, drive, map_chains, registered
from weightscape.core.checks import require, require_count, require_positive
from weightscape.core.facts import Facts
from weightscape.core.keys import chain_keys
from weightscape.core.numbers import number
from weightscape.draws import Header, Place, Recorder
from weightscape.inference.approximation_run import finished_approximation, keep_approximation
from weightscape.inference.gaussian import Covariance, Diagonal, Gaussian, LowRank
from weightscape.inference.method import Circumstances, DensityMethod, open_recorder, settings
from weightscape.inference.point.iterate_moments import Gathering, Moments
from weightscape.inference.point.mixture_of_gaussians import MixtureOfGaussians
from weightscape.inference.point.optimise import Ascent, Training
from weightscape.inference.start import require_gradient, start_positions
from weightscape.posterior import Posterior

_STEPS_PER_REPORT = 10
_OPTIMISING, _COLLECTING = "optimising", "collecting"


@registered("inference.SWAG")
class SWAG(DensityMethod):
    """The mean and covariance of iterates around `num_members` modes, trained side by side.

    - `num_steps`, `learning_rate`: of the training, as in MAP.
    - `num_collect`: T.  `every`: steps between two iterates that are taken.  `collecting_rate`: their learning rate.
    - `rank`: K; 0 leaves out D̂ and its half: Σ = diag(σ²).
    - `batch_size`: points in each gradient, of training and collecting alike.

    One member gives a `Gaussian`, several a `MixtureOfGaussians`.
    """

    num_members: int = eqx.field(static=True, default=1)
    num_steps: int = eqx.field(static=True, default=2000)
    learning_rate: Float[Array, ""] = eqx.field(default=0.02, converter=number)
    num_collect: int = eqx.field(static=True, default=100)
    every: int = eqx.field(static=True, default=20)
    collecting_rate: Float[Array, ""] = eqx.field(default=0.01, converter=number)
    rank: int = eqx.field(static=True, default=20)
    batch_size: int = eqx.field(static=True, default=32)

    def __check_init__(self):
        remedy = "Full-batch iterates stop at the mode and have no spread; pass a batch size such as 32."
        require(self.batch_size is not None, "`batch_size` of SWAG must be a number", "None", remedy)
        Training(self.num_members, self.num_steps, self.learning_rate, self.batch_size).check("SWAG")
        require_count("`num_collect` of SWAG", self.num_collect, least=2)
        require_count("`every` of SWAG", self.every)
        require_positive("`collecting_rate` of SWAG", self.collecting_rate)
        require_count("`rank` of SWAG", self.rank, least=0)
        asked = f"`rank` of SWAG must be 0 or from 2 to `num_collect` = {self.num_collect}"
        fits = self.rank == 0 or 2 <= self.rank <= self.num_collect
        require(fits, asked, self.rank, "Pass fewer columns, or collect more iterates.")

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Gaussian | MixtureOfGaussians:
        require_gradient(posterior, "SWAG")
        finished = finished_approximation(key, self, posterior, around)
        if finished is not None:
            return finished
        with open_recorder(key, self, posterior, around) as recorder:
            place = self._collect(key, posterior, recorder, around)
        moments = jax.tree.map(np.asarray, place.state.moments)
        complete = place.done == self.num_collect
        facts = Facts(**settings(self), num_collected=place.done, seconds=recorder.seconds, complete=complete)
        made = _approximation(posterior, moments, facts)
        keep_approximation(key, self, made, around)
        return made

    def _collect(self, key: PRNGKey, posterior: Posterior, recorder: Recorder, around: Circumstances) -> Place:
        """Train, then take iterates; from where a stored run stopped, if it did."""
        key_start, key_steps = jax.random.split(key)
        walks = self._walks(posterior)
        keys, init = chain_keys(key_steps, self.num_members), walks[_OPTIMISING].init
        place = recorder.resumed(init, self.num_members)
        if place is None:
            start = start_positions(key_start, posterior, self.num_members, around.init, around.progress)
            place = Place(_OPTIMISING, 0, map_chains(init, start))
        if place.phase == _OPTIMISING:
            place = _go_on(keys, walks[_OPTIMISING], place, self._plan(_OPTIMISING), recorder, around.progress)
            place = Place(_COLLECTING, 0, place.state)
        return _go_on(keys, walks[_COLLECTING], place, self._plan(_COLLECTING), recorder, around.progress)

    def _walks(self, posterior: Posterior) -> dict[str, Gathering]:
        """Both phases: a cosine schedule from which nothing is taken, then a constant rate."""
        every, first = jnp.asarray(self.every), jnp.asarray(self._plan(_COLLECTING).first)
        # A cosine over infinitely many steps stays at its top.
        courses = {
            _OPTIMISING: (self.learning_rate, number(self.num_steps)),
            _COLLECTING: (self.collecting_rate, number(math.inf)),
        }
        return {
            phase: Gathering(Ascent(posterior, rate, num_steps, self.batch_size), self.rank, every, first)
            for phase, (rate, num_steps) in courses.items()
        }

    def _plan(self, phase: str) -> Plan:
        training = Plan(math.ceil(self.num_steps / _STEPS_PER_REPORT), _STEPS_PER_REPORT)
        if phase == _OPTIMISING:
            return training
        return Plan(self.num_collect, self.every, first=training.num_outputs * _STEPS_PER_REPORT)


def _go_on(
    keys: Key[Array, " member"], walk: Gathering, place: Place, plan: Plan, recorder: Recorder, progress: Progress
) -> Place:
    """A phase from `place` to its end, recorded as it goes."""
    num_shards = walk.ascent.posterior.num_shards
    plan = plan._replace(seconds=progress.seconds_left(), done=place.done, num_shards=num_shards)
    shown = lambda outputs: {"log density": float(np.mean(outputs[:, -1]))}
    for chunk in drive(walk, keys, place.state, plan, label=place.phase, progress=progress, facts=shown):
        place = Place(place.phase, chunk.done, chunk.state)
        recorder.add(None, place)
    return place


def _approximation(posterior: Posterior, moments: Moments, facts: Facts) -> Gaussian | MixtureOfGaussians:
    """One Gaussian, or a mixture of several, from moments with a leading member axis."""
    members = [Moments(*(leaf[i] for leaf in moments)) for i in range(len(moments.num_taken))]
    bad = [i for i, member in enumerate(members) if not np.all(np.isfinite(member.mean + member.squares))]
    remedy = "Lower `collecting_rate` and `learning_rate`, or check the scales of prior and likelihood."
    require(not bad, "SWAG must end at finite weights", f"non-finite values in members {bad}", remedy)
    layout = Header.of(posterior).layout()
    gaussians = [
        Gaussian.over(posterior, layout.unflatten(jnp.asarray(one.mean)), _covariance(one), facts=facts)
        for one in members
    ]
    return gaussians[0] if len(gaussians) == 1 else MixtureOfGaussians.of(gaussians, facts=facts)


def _covariance(moments: Moments) -> Covariance:
    """Σ = ½ (diag(σ²) + D̂ D̂ᵀ / (K − 1)), or diag(σ²) where no deviations are kept."""
    variance = moments.squares / int(moments.num_taken)  # a plain number keeps the type of the weights
    still = int(np.sum(variance <= 0))
    remedy = "Collect more iterates, further apart or at a larger `collecting_rate`."
    require(still == 0, "Every weight must vary between the iterates of SWAG", f"{still} that do not", remedy)
    kept = min(len(moments.deviations), int(moments.num_taken))
    if kept < 2:
        return Diagonal(np.sqrt(variance))
    factor = moments.deviations[:kept].T / math.sqrt(2 * (kept - 1))
    return LowRank.of_covariance(jnp.asarray(np.sqrt(variance / 2)), jnp.asarray(factor))
