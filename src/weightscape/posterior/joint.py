"""The joint density of parameters and targets, and the coordinates in which samplers see it.

    p(y, θ | x) = p(y | f(x; θ)) p(θ),      θ = place(position)

`Joint` declares what a posterior needs of a model; `Model` is the one that people make.
"""

import abc
from typing import NamedTuple

import equinox as eqx
from jaxtyping import Array, Float

from weightscape.core.types import PRNGKey, Scalar
from weightscape.likelihoods import Likelihood
from weightscape.networks import Network
from weightscape.posterior.parameters import Parameters, Position
from weightscape.priors import Prior


class Placed(NamedTuple):
    """Parameters at a position: log p(θ) in their own space, and log |det ∂θ/∂position|."""

    parameters: Parameters
    log_prior: Scalar
    log_jacobian: Scalar


class Joint(eqx.Module):
    """Network × likelihood × prior, seen from a sampler."""

    network: eqx.AbstractVar[Network]
    likelihood: eqx.AbstractVar[Likelihood]
    prior: eqx.AbstractVar[Prior]

    @abc.abstractmethod
    def place(self, position: Position) -> Placed:
        """The parameters at a position, with log p(θ) and log |det J|."""

    @abc.abstractmethod
    def unplace(self, parameters: Parameters) -> Position:
        """The position of given parameters: the inverse of `place`."""

    @abc.abstractmethod
    def sample_position(self, key: PRNGKey, x: Float[Array, "point ..."]) -> Position:
        """A position drawn from the prior."""

    @abc.abstractmethod
    def start_position(self, key: PRNGKey, x: Float[Array, "point ..."]) -> Position:
        """Where an optimiser or a chain starts: the network's own initial weights, the rest at the origin."""

    @abc.abstractmethod
    def parameters_like(self, x: Float[Array, "point ..."]) -> Parameters:
        """Shapes and types of the parameters, without computing any."""
