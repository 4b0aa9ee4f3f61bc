"""Warm-up: find the step size ε and the diagonal mass M while the chain travels to where the posterior is.

ε follows Nesterov's dual averaging towards a wanted acceptance rate; M⁻¹ is the variance of the positions in windows
that double in length, between a first stretch (15 %) and a last one (10 %) that only tune ε, as in Stan. The update
rules are blackjax's; here they are one step of the driver, so that warm-up can be watched and bounded in time.

Reference: Hoffman & Gelman (2014), The No-U-Turn Sampler, section 3.2; Stan reference manual, HMC adaptation.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Int

from weightscape.core import PRNGKey
from weightscape.inference.mcmc.kernels import dual_averaging_adaptation, mass_matrix_adaptation
from weightscape.inference.mcmc.transition import Notes, State, Transition, Tuning
from weightscape.posterior import Position

_FIRST_WINDOW = 25
_MOST_WINDOWS = 20
# Stan's 0.05 lets single transitions move log ε by 0.7 even after 50 steps, and the average of such a path is far too
# small. At 0.2 the wanted acceptance is met to a few per cent: `benchmarks/warmup.py` shows both.
_DAMPING = 0.2

_mass_init, _mass_update, _mass_final = mass_matrix_adaptation(is_diagonal_matrix=True)


class WarmupState(NamedTuple):
    """The chain, the dual-averaging state of log ε, and the running variance of the window."""

    chain: Any
    step_size: Any
    mass: Any


class Warmup(eqx.Module):
    """One adapting transition; `num_steps` is the length of the whole warm-up."""

    transition: Transition
    first_step_size: Array
    target_acceptance: Array
    num_steps: Array
    adapt_mass: Array

    def init(self, position: Position) -> WarmupState:
        """Begin with the given step size and unit mass."""
        size_init, _, _ = step_size_rules(self.target_acceptance)
        flat, _ = ravel_pytree(position)
        mass = _mass_init(flat.size, jnp.ones_like(flat))
        return WarmupState(self.transition.init(position), size_init(self.first_step_size), mass)

    def __call__(self, key: PRNGKey, state: WarmupState, index: Int[Array, ""]) -> tuple[WarmupState, Notes]:
        """Move once with the current tuning, then learn from it."""
        size_init, size_update, size_final = step_size_rules(self.target_acceptance)
        tuning = Tuning(jnp.exp(state.step_size.log_step_size), state.mass.inverse_mass_matrix)
        chain, notes = self.transition.move(key, state.chain, tuning, index)
        step_size = size_update(state.step_size, notes.acceptance)
        in_window, ends_window = window(index, self.num_steps)
        learn = in_window & (self.adapt_mass > 0)
        mass = _choose(learn, _mass_update(state.mass, ravel_pytree(chain.position)[0]), state.mass)
        closes = ends_window & learn
        mass = _choose(closes, _mass_final(mass), mass)
        step_size = _choose(closes, size_init(size_final(step_size)), step_size)
        return WarmupState(chain, step_size, mass), notes

    def finish(self, state: WarmupState) -> State:
        """The chain with the tuning it has learned."""
        _, _, size_final = step_size_rules(self.target_acceptance)
        return State(state.chain, Tuning(size_final(state.step_size), state.mass.inverse_mass_matrix))


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


def _choose(condition: Bool[Array, ""], chosen: Any, otherwise: Any) -> Any:
    return jax.tree.map(lambda left, right: jnp.where(condition, left, right), chosen, otherwise)
