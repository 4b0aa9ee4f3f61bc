"""Warm-up: find the step size ε and the mass M while the chain travels to where the posterior is.

ε follows Nesterov's dual averaging towards a wanted acceptance rate; M⁻¹ is learned in windows that double in length,
between a first stretch (15 %) and a last one (10 %) that only tune ε, as in Stan. The update rules are blackjax's;
here they are one step of the driver, so that warm-up can be watched, bounded in time, stored and resumed.

Reference: Hoffman & Gelman (2014), The No-U-Turn Sampler, section 3.2; Stan reference manual, HMC adaptation.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Int

from weightscape.core import PRNGKey
from weightscape.draws import Sampled
from weightscape.inference.mcmc.kernels import dual_averaging_adaptation, hmc
from weightscape.inference.mcmc.mass import Mass
from weightscape.inference.mcmc.transition import Transition, Tuning
from weightscape.inference.sampler import Notes, Sampler
from weightscape.posterior import Position, Posterior

_FIRST_WINDOW = 25
_MOST_WINDOWS = 20
# Stan's 0.05 lets single transitions move log ε by 0.7 even after 50 steps, and the average of such a path is far too
# small. At 0.2 the wanted acceptance is met to a few per cent: `benchmarks/warmup.py` shows both.
_DAMPING = 0.2


class State(NamedTuple):
    """The chain, its tuning, and what warm-up holds: the dual-averaging state of log ε, the mass's record."""

    chain: Any
    tuning: Tuning
    step_size: Any
    record: Any


class Adaptive(Sampler):
    """A transition that tunes itself in warm-up, which takes `num_warmup` steps."""

    transition: Transition
    mass: Mass
    first_step_size: Array
    target_acceptance: Array
    num_warmup: Array

    # Written out: type checkers would take the parent's abstract `posterior` for an argument of it.
    def __init__(
        self, transition: Transition, mass: Mass, first_step_size: Array, target_acceptance: Array, num_warmup: Array
    ):
        self.transition = transition
        self.mass = mass
        self.first_step_size = first_step_size
        self.target_acceptance = target_acceptance
        self.num_warmup = num_warmup

    @property
    def posterior(self) -> Posterior:  # pyright: ignore[reportIncompatibleVariableOverride]  AbstractVar allows it
        """The target."""
        return self.transition.posterior

    def init(self, position: Position) -> State:
        """Begin with the given step size and unit mass."""
        flat, _ = ravel_pytree(position)
        step_size = _begin_step_size(self.first_step_size, self.target_acceptance)
        tuning = Tuning(jnp.exp(step_size.log_step_size), self.mass.first(flat))
        return State(hmc.init(position, self.posterior.log_density), tuning, step_size, self.mass.begin(flat))

    def adapt(self, key: PRNGKey, state: State, index: Int[Array, ""]) -> tuple[State, Notes]:
        """Move once with the current tuning, then learn from it."""
        _, update, _ = step_size_rules(self.target_acceptance)
        chain, notes = self.transition.move(key, state.chain, state.tuning, index)
        step_size = update(state.step_size, notes["acceptance"])
        state = State(chain, state.tuning._replace(step_size=jnp.exp(step_size.log_step_size)), step_size, state.record)
        if self.mass.is_learned:
            in_window, ends_window = window(index, self.num_warmup)
            state = change_when(in_window, self._see, state)
            state = change_when(in_window & ends_window, self._close_window, state)
        return state, notes

    def settle(self, state: State) -> State:
        """Take the average of the step sizes, which is what dual averaging promises something about."""
        _, _, final = step_size_rules(self.target_acceptance)
        return state._replace(tuning=state.tuning._replace(step_size=final(state.step_size)))

    def move(self, key: PRNGKey, state: State, index: Int[Array, ""]) -> tuple[State, Notes]:
        chain, notes = self.transition.move(key, state.chain, state.tuning, index)
        return state._replace(chain=chain), notes

    def observe(self, state: State, notes: Notes) -> Sampled:
        return Sampled(self.posterior.constrain(state.chain.position), state.chain.logdensity, notes)

    def position(self, state: State) -> Position:
        return state.chain.position

    def place(self, state: State, position: Position) -> State:
        return state._replace(chain=hmc.init(position, self.posterior.log_density))

    def _see(self, state: State) -> State:
        position, gradient = (ravel_pytree(part)[0] for part in (state.chain.position, state.chain.logdensity_grad))
        return state._replace(record=self.mass.see(state.record, position, gradient))

    def _close_window(self, state: State) -> State:
        """Set M⁻¹ from the window, and begin anew: with it, and with the step size around the average so far."""
        _, _, final = step_size_rules(self.target_acceptance)
        flat, _ = ravel_pytree(state.chain.position)
        step_size = _begin_step_size(final(state.step_size), self.target_acceptance)
        inverse_mass = self.mass.learn(state.record, state.tuning.inverse_mass)
        tuning = Tuning(jnp.exp(step_size.log_step_size), inverse_mass)
        return State(state.chain, tuning, step_size, self.mass.begin(flat))


def step_size_rules(target_acceptance: Array) -> tuple[Any, Any, Any]:
    """`init`, `update` and `final` of dual averaging on log ε."""
    rules: Any = dual_averaging_adaptation  # its annotation says float where a traced number is meant
    return rules(target_acceptance, gamma=_DAMPING)


def window(index: Int[Array, ""], num_steps: Int[Array, ""]) -> tuple[Bool[Array, ""], Bool[Array, ""]]:
    """Whether step `index` lies in a mass window, and whether a window closes after it.

    Windows of 25, 50, 100, … steps follow each other between 15 % and 90 % of the warm-up; one that would not be
    followed by a whole one is stretched to the end.
    """
    first, last = (3 * num_steps) // 20, (9 * num_steps) // 10
    doublings = 2 ** jnp.arange(1, _MOST_WINDOWS + 1)
    ends = first + _FIRST_WINDOW * (doublings - 1)
    followed = first + _FIRST_WINDOW * (2 * doublings - 1) <= last
    closes = jnp.any((ends == index + 1) & followed) | (index + 1 == last)
    return (index >= first) & (index < last), closes


def change_when(condition: Bool[Array, ""], change: Callable[[Any], Any], state: Any) -> Any:
    """`change(state)` where the condition holds.

    A condition that all chains share, such as the schedule of warm-up, stays one under vectorisation, so what is
    costly and rare in `change` is not computed to be thrown away.
    """
    typed = lambda new, old: jnp.asarray(new, old.dtype)
    return jax.lax.cond(condition, lambda old: jax.tree.map(typed, change(old), old), lambda old: old, state)


def _begin_step_size(step_size: Array, target_acceptance: Array) -> Any:
    """Dual averaging from ε on. Its average begins there too: blackjax's begins at ε = 1, which a run whose warm-up is
    empty, or ends just here, would take for what was learned.
    """
    begin, _, _ = step_size_rules(target_acceptance)
    state = begin(step_size)
    return jax.tree.map(jnp.asarray, state._replace(log_step_size_avg=state.log_step_size))
