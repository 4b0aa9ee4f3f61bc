"""A covariance over a flat vector of weights, known by a root.

    Σ = R Rᵀ,        θ = μ + R z  with z ~ N(0, I)

Every structure (diagonal, low rank, Kronecker, blocks, full) says how to multiply by R, Rᵀ and R⁻¹; products with Σ,
densities, draws and divergences follow from these and are written once.
"""

import abc

import equinox as eqx
from jaxtyping import Array, Float

from weightscape.core.types import Scalar


class Covariance(eqx.Module):
    """A positive definite matrix Σ = R Rᵀ that is never formed unless it is stored whole."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """The number d of weights, those without variance included."""

    @property
    @abc.abstractmethod
    def num_free(self) -> int:
        """The number of weights that have a variance: d, but for blocks that leave some weights fixed."""

    @abc.abstractmethod
    def root(self, white: Float[Array, " weight"]) -> Float[Array, " weight"]:
        """R z."""

    @abc.abstractmethod
    def root_transpose(self, vector: Float[Array, " weight"]) -> Float[Array, " weight"]:
        """Rᵀ v."""

    @abc.abstractmethod
    def whiten(self, vector: Float[Array, " weight"]) -> Float[Array, " weight"]:
        """R⁻¹ v; zero where a weight is fixed."""

    @abc.abstractmethod
    def diagonal(self) -> Float[Array, " weight"]:
        """The variances Σ_ii."""

    @abc.abstractmethod
    def precision_diagonal(self) -> Float[Array, " weight"]:
        """(Σ⁻¹)_ii; zero where a weight is fixed."""

    @abc.abstractmethod
    def log_determinant(self) -> Scalar:
        """log |Σ|, over the weights that have a variance."""

    def times(self, vector: Float[Array, " weight"]) -> Float[Array, " weight"]:
        """Σ v."""
        return self.root(self.root_transpose(vector))
