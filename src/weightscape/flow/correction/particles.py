"""Particles: points of the base space, moved so that a power of their weights is heeded.

    π_β(z) ∝ N(z; 0, I) w(z)^β,      log w(z) = log p(D, T(z)) − log q(T(z))

A move proposes z' = √(1 − ρ²) z + ρ ξ with ξ ~ N(0, I). It leaves the normal invariant by itself, so it is accepted
with probability min(1, (w(z') / w(z))^β): no gradient of q or of the transport is asked for, one push for each move.

Reference: Cotter, Roberts, Stuart & White (2013), MCMC methods for functions, section 3.2.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from weightscape.core import PRNGKey, Scalar
from weightscape.flow.correction.transport import Transport
from weightscape.posterior import Position, Posterior


class Particles(NamedTuple):
    """One particle, or many on a leading axis: z, T(z), log p(D, T(z)) and log q(T(z))."""

    z: Any
    position: Position
    log_density: Any
    log_proposal: Any

    def log_weights(self) -> Float[np.ndarray, " particle"]:
        """log w in double precision; −∞ where the posterior has no mass."""
        return np.asarray(self.log_density, np.float64) - np.asarray(self.log_proposal, np.float64)

    def chosen(self, rows: Int[np.ndarray, " particle"]) -> "Particles":
        """The particles at `rows`, in that order."""
        return jax.tree.map(lambda leaf: leaf[rows], self)


class Ground(eqx.Module):
    """What particles stand on: the posterior p and the transport T, under which they have the density q."""

    posterior: Posterior
    transport: Transport

    def at(self, z: Float[Array, " weight"]) -> Particles:
        """The particle at z."""
        position, log_proposal = self.transport.push(z)
        return Particles(z, position, self.posterior.log_density(position), log_proposal)


class Start(eqx.Module):
    """A particle from q."""

    ground: Ground

    def __call__(self, key: PRNGKey) -> Particles:
        return self.ground.at(jax.random.normal(key, (self.ground.transport.num_weights,)))


class Move(eqx.Module):
    """One move of a particle at power β, of length ρ; returns the probability of its acceptance too."""

    ground: Ground
    power: Scalar
    length: Scalar

    def __call__(self, key: PRNGKey, old: Particles) -> tuple[Particles, Scalar]:
        key_noise, key_accept = jax.random.split(key)
        noise = jax.random.normal(key_noise, old.z.shape, old.z.dtype)
        new = self.ground.at(jnp.sqrt(1 - self.length**2) * old.z + self.length * noise)
        log_ratio = self.power * ((new.log_density - new.log_proposal) - (old.log_density - old.log_proposal))
        acceptance = jnp.exp(jnp.minimum(jnp.nan_to_num(log_ratio, nan=-jnp.inf), 0))
        is_accepted = jax.random.uniform(key_accept, (), acceptance.dtype) < acceptance
        return jax.tree.map(lambda a, b: jnp.where(is_accepted, a, b), new, old), acceptance
