"""One transition of Hamiltonian Monte Carlo, and how long its trajectory is.

The kernel is blackjax's: momentum r ~ N(0, M), L leapfrog steps of size ε on H(z, r) = −log p(z) + ½ rᵀM⁻¹r, accepted
with probability min(1, exp(−ΔH)). It leaves p(z) invariant for every ε, L and M that do not depend on z.

L is drawn anew for each transition, since a fixed length can fall in step with the target's own periods and never
mix: transition i takes round(L̄ (1 + jitter · (2 u_i − 1))) steps with u_i the van der Corput sequence. All chains
share u_i, so vectorised chains never wait for each other.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from weightscape.core import PRNGKey, Scalar
from weightscape.draws import Sampled
from weightscape.inference.mcmc.kernels import hmc
from weightscape.posterior import Position, Posterior

_KERNEL: Any = hmc.build_kernel()  # its annotations say float where a traced number is meant


class Tuning(NamedTuple):
    """ε and the diagonal of M⁻¹ of one chain."""

    step_size: Float[Array, ""]
    inverse_mass: Float[Array, " weight"]


class Notes(NamedTuple):
    """What a person may want to know of a transition."""

    acceptance: Float[Array, ""]
    is_accepted: Bool[Array, ""]
    is_divergent: Bool[Array, ""]
    energy: Float[Array, ""]


class State(NamedTuple):
    """Where the chain is (position, log density, gradient) and how it moves."""

    chain: Any
    tuning: Tuning


class Transition(eqx.Module):
    """HMC on a posterior; `num_leapfrog` is L̄."""

    posterior: Posterior
    num_leapfrog: Array
    jitter: Array

    def init(self, position: Position) -> Any:
        """The chain's state at a position."""
        return hmc.init(position, self.posterior.log_density)

    def move(self, key: PRNGKey, chain: Any, tuning: Tuning, index: Int[Array, ""]) -> tuple[Any, Notes]:
        """One transition."""
        length = trajectory_length(self.num_leapfrog, self.jitter, index)
        chain, info = _KERNEL(key, chain, self.posterior.log_density, tuning.step_size, tuning.inverse_mass, length)
        return chain, Notes(info.acceptance_rate, info.is_accepted, info.is_divergent, info.energy)

    def __call__(self, key: PRNGKey, state: State, index: Int[Array, ""]) -> tuple[State, Sampled]:
        """One transition of a tuned chain, and the draw it ends in."""
        chain, notes = self.move(key, state.chain, state.tuning, index)
        info = {**notes._asdict(), "step_size": state.tuning.step_size}
        sampled = Sampled(self.posterior.constrain(chain.position), chain.logdensity, info)
        return State(chain, state.tuning), sampled


def trajectory_length(num_leapfrog: Array, jitter: Array, index: Int[Array, ""]) -> Int[Array, ""]:
    """The number of leapfrog steps of transition `index`: L̄ (1 + jitter (2u − 1)), rounded, at least 1."""
    stretch = 1 + jitter * (2 * van_der_corput(index) - 1)
    return jnp.maximum(1, jnp.round(num_leapfrog * stretch)).astype(jnp.int32)


def van_der_corput(index: Int[Array, ""]) -> Scalar:
    """The bits of `index` mirrored at the point: 1/2, 1/4, 3/4, 1/8, … for index 0, 1, 2, 3, …"""
    bits = (index + 1) >> jnp.arange(24) & 1
    return jnp.sum(bits * 0.5 ** (jnp.arange(24) + 1.0))
