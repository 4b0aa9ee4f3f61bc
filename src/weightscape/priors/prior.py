"""A prior is a density over a parameter tree, together with coordinates that samplers can move in.

Samplers move an unconstrained *position*. A prior says how a position becomes parameters,

    (position, latent position)  ──constrain──►  (parameters θ, latent variables τ),     log |det ∂(θ, τ)/∂position|,

and what the joint density log p(θ, τ) is. Most priors have no latent variables and live on all of ℝ^d, where the map
is the identity (`RealPrior`); a density over scales lives on positive numbers and uses the exponential
(`PositivePrior`); a hierarchical prior has latent scales and may couple them with the weights (θ = τ z).
"""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from weightscape.core import tree
from weightscape.core.types import PRNGKey, Scalar, Tree

NOTHING = ()
"""The latent tree of a prior that has none: it holds no leaves."""


class Coordinates(NamedTuple):
    """Where a sampler stands: one tree shaped like the parameters, one for the latent variables."""

    params: Tree
    latent: Tree


class Constrained(NamedTuple):
    """Parameters, latent variables, and the log-determinant of the map that made them from coordinates."""

    params: Tree
    latent: Tree
    log_jacobian: Scalar


class Prior(eqx.Module):
    """A normalised density p(θ, τ) over a parameter tree θ and latent variables τ, if any."""

    @property
    @abc.abstractmethod
    def is_discrete(self) -> bool:
        """Whether any weight takes only some values, so that there is no gradient to follow."""

    @abc.abstractmethod
    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        """log p(θ, τ), in the parameters' own space."""

    @abc.abstractmethod
    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        """Parameters θ ~ p(θ), shaped like `params_like`."""

    @abc.abstractmethod
    def sample_coordinates(self, key: PRNGKey, params_like: Tree) -> Coordinates:
        """Coordinates whose image under `constrain` is distributed as p(θ, τ)."""

    @abc.abstractmethod
    def coordinates(self, params: Tree, latent: Tree | None = None) -> Coordinates:
        """The inverse of `constrain`; without `latent`, with latent variables at their starting values."""

    @abc.abstractmethod
    def constrain(self, coordinates: Coordinates) -> Constrained:
        """Parameters and latent variables at these coordinates, with log |det J|."""


class RealPrior(Prior):
    """A prior on all of ℝ^d without latent variables: coordinates are the parameters themselves."""

    @property
    def is_discrete(self) -> bool:
        return False

    def sample_coordinates(self, key: PRNGKey, params_like: Tree) -> Coordinates:
        return Coordinates(self.sample(key, params_like), NOTHING)

    def coordinates(self, params: Tree, latent: Tree | None = None) -> Coordinates:
        return Coordinates(params, NOTHING)

    def constrain(self, coordinates: Coordinates) -> Constrained:
        return Constrained(coordinates.params, NOTHING, jnp.zeros(()))


class PositivePrior(Prior):
    """A prior on positive numbers: θ = exp(position), log |det J| = Σ position."""

    @property
    def is_discrete(self) -> bool:
        return False

    def sample_coordinates(self, key: PRNGKey, params_like: Tree) -> Coordinates:
        return self.coordinates(self.sample(key, params_like))

    def coordinates(self, params: Tree, latent: Tree | None = None) -> Coordinates:
        return Coordinates(jax.tree.map(jnp.log, params), NOTHING)

    def constrain(self, coordinates: Coordinates) -> Constrained:
        return Constrained(jax.tree.map(jnp.exp, coordinates.params), NOTHING, tree.total(coordinates.params))
