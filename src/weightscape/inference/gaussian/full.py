"""A covariance that is stored whole, by a root and its inverse."""

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from weightscape.core import Scalar, registered
from weightscape.inference.gaussian.covariance import Covariance


@registered("inference.Full")
class Full(Covariance):
    """Σ = R Rᵀ with R triangular.

    - `root_matrix`: R.  `inverse_root`: R⁻¹.

    Made by `Full.of_covariance(Σ)`, `Full.of_precision(Σ⁻¹)` or, with L lower triangular, `Full.of_cholesky(L)`.
    """

    root_matrix: Float[Array, "weight weight"] = eqx.field(converter=jnp.asarray)
    inverse_root: Float[Array, "weight weight"] = eqx.field(converter=jnp.asarray)

    @staticmethod
    def of_covariance(covariance: Float[Array, "weight weight"]) -> "Full":
        """R is the Cholesky factor of Σ."""
        return Full.of_cholesky(jnp.linalg.cholesky(covariance))

    @staticmethod
    def of_cholesky(cholesky: Float[Array, "weight weight"]) -> "Full":
        """Σ = L Lᵀ."""
        return Full(cholesky, _inverse(cholesky))

    @staticmethod
    def of_precision(precision: Float[Array, "weight weight"]) -> "Full":
        """Σ⁻¹ = L Lᵀ, so R = L⁻ᵀ: the precision is never inverted as a matrix."""
        cholesky = jnp.linalg.cholesky(precision)
        return Full(_inverse(cholesky).T, cholesky.T)

    @property
    def size(self) -> int:
        return len(self.root_matrix)

    @property
    def num_free(self) -> int:
        return len(self.root_matrix)

    def root(self, white: Float[Array, " weight"]) -> Float[Array, " weight"]:
        return self.root_matrix @ white

    def root_transpose(self, vector: Float[Array, " weight"]) -> Float[Array, " weight"]:
        return self.root_matrix.T @ vector

    def whiten(self, vector: Float[Array, " weight"]) -> Float[Array, " weight"]:
        return self.inverse_root @ vector

    def diagonal(self) -> Float[Array, " weight"]:
        return jnp.sum(self.root_matrix**2, axis=1)

    def precision_diagonal(self) -> Float[Array, " weight"]:
        return jnp.sum(self.inverse_root**2, axis=0)

    def log_determinant(self) -> Scalar:
        return 2 * jnp.sum(jnp.log(jnp.diag(self.root_matrix)))


def _inverse(lower: Float[Array, "weight weight"]) -> Float[Array, "weight weight"]:
    return solve_triangular(lower, jnp.eye(len(lower), dtype=lower.dtype), lower=True)
