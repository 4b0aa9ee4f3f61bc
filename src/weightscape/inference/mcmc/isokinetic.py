"""One step of microcanonical Langevin dynamics, and its warm-up.

The kernel is blackjax's (isokinetic, with McLachlan's minimal-norm integrator). A step to a non-finite density is not
taken; the chain stays, gets a new random direction, and notes a divergence. Warm-up has three thirds:

1. ε is tuned, while the chain travels to where the posterior is.
2. ε is tuned on, and positions are watched. At the end L = √(Σ_i Var z_i), the radius of the posterior; or, where a
   mass is learned from them, L = √d, which is that radius after rescaling.
3. ε is tuned for that.

ε: the error ΔE of a step has variance ∝ ε⁶, so that a step with ξ = ΔE² / (d v) for the wanted variance v says that
ε ξ^(-1/6) would have been right. ε⁻⁶ is set to the mean of ξ/ε⁶ over about the last 75 steps, in which steps with
ξ far from one count less.

Reference: Robnik et al. (2023), Microcanonical Hamiltonian Monte Carlo. We find L from the variances alone, where
blackjax corrects it by the chain's autocorrelation.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from weightscape.core import PRNGKey, Scalar
from weightscape.draws import Sampled
from weightscape.inference.mcmc.kernels import IntegratorState, mclmc, welford_algorithm
from weightscape.inference.mcmc.mass import Mass
from weightscape.inference.mcmc.warmup import change_when
from weightscape.inference.sampler import Notes, Sampler
from weightscape.posterior import Position, Posterior

_KERNEL: Any = mclmc.build_kernel()  # its annotations say float where a traced number is meant
_watch: Any = welford_algorithm(is_diagonal_matrix=True)
_watch_init, _watch_update, _watch_final = _watch

_MEMORY = 149 / 151  # how much a past step counts against the next one: 75 steps on average, as in blackjax
_TRUST = 1.5  # how far log ξ / 6 may lie from zero for a step to count
_LEAST_ERROR = 1e-8  # of ξ, so that its logarithm exists
_AFTER_DIVERGENCE = 0.8  # the largest ε after a step to a non-finite density, in parts of that step's


class Tuning(NamedTuple):
    """ε, L and M⁻¹ of one chain."""

    step_size: Float[Array, ""]
    turning_length: Float[Array, ""]
    inverse_mass: Any


class StepSizes(NamedTuple):
    """log Σ w ξ/ε⁶ and log Σ w over past steps, and the largest ε that may be taken."""

    log_sum: Float[Array, ""]
    log_weight: Float[Array, ""]
    largest: Float[Array, ""]


class State(NamedTuple):
    """The chain, its tuning, and what warm-up holds: of steps, of positions, and for the mass."""

    chain: Any
    tuning: Tuning
    steps: StepSizes
    positions: Any
    record: Any


class Isokinetic(Sampler):
    """Microcanonical Langevin dynamics on a posterior; `energy_variance` is v."""

    posterior: Posterior
    mass: Mass
    first_step_size: Array
    energy_variance: Array
    num_warmup: Array

    def init(self, position: Position) -> State:
        """Begin with L = √d and unit mass; the first direction is any, since it is forgotten."""
        flat, unravel = ravel_pytree(position)
        log_density, gradient = jax.value_and_grad(self.posterior.log_density)(position)
        direction = unravel(jnp.full_like(flat, flat.size**-0.5))
        tuning = Tuning(self.first_step_size, jnp.sqrt(jnp.asarray(flat.size, flat.dtype)), self.mass.first(flat))
        chain = IntegratorState(position, direction, log_density, gradient)
        positions = jax.tree.map(jnp.asarray, _watch_init(flat.size))
        return State(chain, tuning, _no_steps(tuning.step_size), positions, self.mass.begin(flat))

    def adapt(self, key: PRNGKey, state: State, index: Int[Array, ""]) -> tuple[State, Notes]:
        """Take one step with the current tuning, then learn from it."""
        state, notes = self.move(key, state, index)
        state = self._tune_step_size(state, notes)
        watches = (3 * index >= self.num_warmup) & (3 * index < 2 * self.num_warmup)
        closes = watches & (3 * (index + 1) >= 2 * self.num_warmup)
        state = change_when(watches, self._see, state)
        return change_when(closes, self._rescale, state), notes

    def settle(self, state: State) -> State:
        return state

    def move(self, key: PRNGKey, state: State, index: Int[Array, ""]) -> tuple[State, Notes]:
        step_size, turning_length, inverse_mass = state.tuning
        density = self.posterior.log_density
        chain, info = _KERNEL(key, state.chain, density, inverse_mass, turning_length, step_size)
        notes = {
            "is_accepted": info.nonans,
            "is_divergent": ~info.nonans,
            "energy_error": jnp.where(info.nonans, info.energy_change, jnp.inf),
            "step_size": step_size,
            "turning_length": turning_length,
        }
        return state._replace(chain=chain), notes

    def observe(self, state: State, notes: Notes) -> Sampled:
        return Sampled(self.posterior.constrain(state.chain.position), state.chain.logdensity, notes)

    def position(self, state: State) -> Position:
        return state.chain.position

    def place(self, state: State, position: Position) -> State:
        log_density, gradient = jax.value_and_grad(self.posterior.log_density)(position)
        return state._replace(chain=IntegratorState(position, state.chain.momentum, log_density, gradient))

    def _tune_step_size(self, state: State, notes: Notes) -> State:
        size = ravel_pytree(state.chain.position)[0].size
        ratio = notes["energy_error"] ** 2 / (size * self.energy_variance) + _LEAST_ERROR
        steps = tune_step_size(state.steps, ratio, state.tuning.step_size)
        return state._replace(steps=steps, tuning=state.tuning._replace(step_size=wanted_step_size(steps)))

    def _see(self, state: State) -> State:
        position, gradient = (ravel_pytree(part)[0] for part in (state.chain.position, state.chain.logdensity_grad))
        positions = _watch_update(state.positions, position)
        return state._replace(positions=positions, record=self.mass.see(state.record, position, gradient))

    def _rescale(self, state: State) -> State:
        """Set L, and M⁻¹ where it is learned, from what was seen; ε keeps its proportion to L.

        All stays as it is where fewer than two positions were seen, or all were the same.
        """
        variance, _, mean = _watch_final(state.positions)
        radius = jnp.sqrt(jnp.sum(variance))
        inverse_mass = self.mass.learn(state.record, state.tuning.inverse_mass)
        length = jnp.sqrt(jnp.asarray(mean.size, mean.dtype)) if self.mass.is_learned else radius
        first = state.tuning.step_size * length / radius
        new = state._replace(tuning=Tuning(first, length, inverse_mass), steps=_no_steps(first))
        return jax.tree.map(lambda new, old: jnp.where(radius > 0, new, old), new, state)


def tune_step_size(steps: StepSizes, ratio: Scalar, step_size: Array) -> StepSizes:
    """The sums after a step of size ε with error ratio ξ, as logarithms: ε⁶ leaves the range of single precision."""
    log_ratio = jnp.log(ratio)
    log_weight = -0.5 * (log_ratio / (6 * _TRUST)) ** 2
    fade = jnp.log(_MEMORY)
    log_sum = jnp.logaddexp(fade + steps.log_sum, log_weight + log_ratio - 6 * jnp.log(step_size))
    taken = StepSizes(log_sum, jnp.logaddexp(fade + steps.log_weight, log_weight), steps.largest)
    refused = steps._replace(largest=_AFTER_DIVERGENCE * step_size)
    return jax.tree.map(lambda new, old: jnp.where(jnp.isfinite(ratio), new, old), taken, refused)


def wanted_step_size(steps: StepSizes) -> Scalar:
    """ε, from the mean of ξ/ε⁶."""
    return jnp.minimum(jnp.exp((steps.log_weight - steps.log_sum) / 6), steps.largest)


def _no_steps(first: Array) -> StepSizes:
    """Sums that say ε = `first`, with no weight to speak of."""
    nothing = jnp.full_like(first, -1e3)
    return StepSizes(nothing - 6 * jnp.log(first), nothing, jnp.full_like(first, jnp.inf))
