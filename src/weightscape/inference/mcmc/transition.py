"""One transition of Hamiltonian Monte Carlo.

The kernel is blackjax's: momentum r ~ N(0, M), L leapfrog steps of size ε on H(z, r) = −log p(z) + ½ rᵀM⁻¹r, accepted
with probability min(1, exp(−ΔH)). It leaves p(z) invariant for every ε, L and M that do not depend on z.

Notes of such transitions: `energy` is H where the chain ends up, `energy_error` is ΔH = H(proposal) − H(start). Where
the proposal's energy is not finite ΔH is +∞, so that it counts as divergent and never enters an average unseen.
"""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from weightscape.core import PRNGKey, Scalar
from weightscape.inference.mcmc.kernels import default_metric, hmc
from weightscape.inference.mcmc.length import Length
from weightscape.inference.sampler import Notes
from weightscape.posterior import Posterior

_KERNEL: Any = hmc.build_kernel()  # its annotations say float where a traced number is meant


class Tuning(NamedTuple):
    """ε and M⁻¹ of one chain; M⁻¹ is its diagonal, or low-rank factors."""

    step_size: Float[Array, ""]
    inverse_mass: Any


class Transition(eqx.Module):
    """A kernel that leaves the posterior invariant, and is tuned by ε and M⁻¹."""

    posterior: eqx.AbstractVar[Posterior]

    @abc.abstractmethod
    def move(self, key: PRNGKey, chain: Any, tuning: Tuning, index: Int[Array, ""]) -> tuple[Any, Notes]:
        """Transition `index` of a chain: its next position with log density and gradient, and notes."""


class Hamiltonian(Transition):
    """HMC on a posterior, with `length` saying how many leapfrog steps there are."""

    posterior: Posterior
    length: Length

    def move(self, key: PRNGKey, chain: Any, tuning: Tuning, index: Int[Array, ""]) -> tuple[Any, Notes]:
        num_leapfrog = self.length.num_leapfrog(tuning.step_size, index)
        step_size, inverse_mass = tuning
        moved, info = _KERNEL(key, chain, self.posterior.log_density, step_size, inverse_mass, num_leapfrog)
        before = start_energy(chain, info.momentum, inverse_mass)
        notes = {
            "acceptance": info.acceptance_rate,
            "is_accepted": info.is_accepted,
            "is_divergent": info.is_divergent,
            "energy": jnp.where(info.is_accepted, info.energy, before),
            "energy_error": energy_error(info.energy, before),
            "step_size": step_size,
            "num_leapfrog": num_leapfrog,
        }
        return moved, notes


def start_energy(chain: Any, momentum: Any, inverse_mass: Any) -> Scalar:
    """H(z, r) where a trajectory begins."""
    return default_metric(inverse_mass).kinetic_energy(momentum) - chain.logdensity


def energy_error(after: Scalar, before: Scalar) -> Scalar:
    """ΔH, with +∞ where it is not a number."""
    error = after - before
    return jnp.where(jnp.isnan(error), jnp.inf, error)
