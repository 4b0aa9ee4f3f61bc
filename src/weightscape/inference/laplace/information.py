"""Information: what the data say about the weights, in one of several structures, before a prior is added.

    Σ⁻¹ = H + P,        H the likelihood's curvature, P the prior's precision

H is kept apart, so that the evidence can be followed through other priors and other noise without touching the data.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from weightscape.core import Scalar
from weightscape.inference.gaussian import Blocks, Covariance, Diagonal, Full, LowRank

Precision = Float[Array, " weight"] | Float[Array, "weight weight"]
"""P: its diagonal, or for weights that the prior couples the whole matrix."""


class Information(eqx.Module):
    """H of some structure."""

    @abc.abstractmethod
    def covariance(self, prior: Precision) -> Covariance:
        """Σ = (H + P)⁻¹."""

    @abc.abstractmethod
    def log_determinant(self, prior: Precision) -> Scalar:
        """log |H + P|, differentiable in P."""

    @abc.abstractmethod
    def scaled(self, factor: Scalar) -> "Information":
        """factor · H."""

    @abc.abstractmethod
    def least(self, prior: Precision) -> Scalar:
        """The smallest eigenvalue of H + P, or for structures that cannot be indefinite of P alone."""


class DenseInformation(Information):
    """H as a matrix."""

    matrix: Float[Array, "weight weight"]

    def covariance(self, prior: Precision) -> Covariance:
        return Full.of_precision(self._precision(prior))

    def log_determinant(self, prior: Precision) -> Scalar:
        return jnp.linalg.slogdet(self._precision(prior))[1]

    def scaled(self, factor: Scalar) -> "DenseInformation":
        return DenseInformation(factor * self.matrix)

    def least(self, prior: Precision) -> Scalar:
        return jnp.linalg.eigvalsh(self._precision(prior))[0]

    def _precision(self, prior: Precision) -> Float[Array, "weight weight"]:
        return self.matrix + (jnp.diag(prior) if prior.ndim == 1 else prior)


class DiagonalInformation(Information):
    """H's diagonal."""

    entries: Float[Array, " weight"]

    def covariance(self, prior: Precision) -> Covariance:
        return Diagonal(1 / jnp.sqrt(self.entries + prior))

    def log_determinant(self, prior: Precision) -> Scalar:
        return jnp.sum(jnp.log(self.entries + prior))

    def scaled(self, factor: Scalar) -> "DiagonalInformation":
        return DiagonalInformation(factor * self.entries)

    def least(self, prior: Precision) -> Scalar:
        return jnp.min(self.entries + prior)


class LowRankInformation(Information):
    """H ≈ B Bᵀ, its few largest directions.  `factor`: B."""

    factor: Float[Array, "weight rank"]

    def covariance(self, prior: Precision) -> Covariance:
        return LowRank.of_precision(1 / jnp.sqrt(prior), self.factor)

    def log_determinant(self, prior: Precision) -> Scalar:
        white = self.factor / jnp.sqrt(prior)[:, None]
        small = jnp.eye(white.shape[1], dtype=white.dtype) + white.T @ white
        return jnp.sum(jnp.log(prior)) + jnp.linalg.slogdet(small)[1]

    def scaled(self, factor: Scalar) -> "LowRankInformation":
        return LowRankInformation(jnp.sqrt(factor) * self.factor)

    def least(self, prior: Precision) -> Scalar:
        return jnp.min(prior)


class BlockInformation(Information):
    """Blocks of H, between which it is taken as zero.  `places`: where the weights of each lie."""

    parts: tuple[Information, ...]
    places: tuple[Int[Array, " _"], ...]
    num_weights: int = eqx.field(static=True)

    def covariance(self, prior: Precision) -> Covariance:
        each = zip(self.parts, self.places, strict=True)
        return Blocks(tuple(part.covariance(prior[where]) for part, where in each), self.places, self.num_weights)

    def log_determinant(self, prior: Precision) -> Scalar:
        each = zip(self.parts, self.places, strict=True)
        return sum((part.log_determinant(prior[where]) for part, where in each), start=jnp.zeros(()))

    def scaled(self, factor: Scalar) -> "BlockInformation":
        return BlockInformation(tuple(part.scaled(factor) for part in self.parts), self.places, self.num_weights)

    def least(self, prior: Precision) -> Scalar:
        each = zip(self.parts, self.places, strict=True)
        return jnp.min(jnp.stack([part.least(prior[where]) for part, where in each]))
