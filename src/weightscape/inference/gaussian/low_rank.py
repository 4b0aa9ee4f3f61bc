"""A diagonal, stretched or shrunk along a few directions.

    Σ = S (I + U diag(c) Uᵀ) S,       S = diag(s),   UᵀU = I,   c > −1

Both kinds of "low rank plus diagonal" are of this form. A covariance D + B Bᵀ stretches (c > 0); the inverse of a
precision P + B Bᵀ shrinks (c < 0), as in a Laplace approximation with a few curved directions.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from weightscape.core import Scalar, registered
from weightscape.core.checks import require, require_positive
from weightscape.inference.gaussian.covariance import Covariance


@registered("inference.LowRank")
class LowRank(Covariance):
    """Σ = S (I + U diag(c) Uᵀ) S.

    - `scale`: s.  `basis`: U, with orthonormal columns.  `gains`: c, each above −1.

    Made by `LowRank.of_covariance(s, B)` or `LowRank.of_precision(s, B)`.
    """

    scale: Float[Array, " weight"] = eqx.field(converter=jnp.asarray)
    basis: Float[Array, "weight rank"] = eqx.field(converter=jnp.asarray)
    gains: Float[Array, " rank"] = eqx.field(converter=jnp.asarray)

    def __check_init__(self):
        require_positive("`scale` of LowRank", self.scale)
        if not isinstance(self.gains, Tracer):
            least = float(np.min(np.asarray(self.gains), initial=0.0))
            require(least > -1, "`gains` of LowRank must be above -1", least, "Check the factor for huge entries.")

    @staticmethod
    def of_covariance(scale: Float[Array, " weight"], factor: Float[Array, "weight rank"]) -> "LowRank":
        """Σ = diag(s²) + B Bᵀ, with B = `factor`."""
        basis, squares = _principal(factor / scale[:, None])
        return LowRank(scale, basis, squares)

    @staticmethod
    def of_precision(scale: Float[Array, " weight"], factor: Float[Array, "weight rank"]) -> "LowRank":
        """Σ = (diag(s⁻²) + B Bᵀ)⁻¹, with B = `factor`."""
        basis, squares = _principal(factor * scale[:, None])
        return LowRank(scale, basis, -squares / (1 + squares))

    @property
    def size(self) -> int:
        return len(self.scale)

    @property
    def num_free(self) -> int:
        return len(self.scale)

    def root(self, white: Float[Array, " weight"]) -> Float[Array, " weight"]:
        return self.scale * self._stretch(white, jnp.sqrt(1 + self.gains))

    def root_transpose(self, vector: Float[Array, " weight"]) -> Float[Array, " weight"]:
        return self._stretch(self.scale * vector, jnp.sqrt(1 + self.gains))

    def whiten(self, vector: Float[Array, " weight"]) -> Float[Array, " weight"]:
        return self._stretch(vector / self.scale, 1 / jnp.sqrt(1 + self.gains))

    def diagonal(self) -> Float[Array, " weight"]:
        return self.scale**2 * (1 + self.basis**2 @ self.gains)

    def precision_diagonal(self) -> Float[Array, " weight"]:
        return (1 - self.basis**2 @ (self.gains / (1 + self.gains))) / self.scale**2

    def log_determinant(self) -> Scalar:
        return 2 * jnp.sum(jnp.log(self.scale)) + jnp.sum(jnp.log1p(self.gains))

    def _stretch(self, vector: Float[Array, " weight"], by: Float[Array, " rank"]) -> Float[Array, " weight"]:
        """(I + U diag(by − 1) Uᵀ) v: the directions of U are multiplied, the others stay."""
        return vector + self.basis @ ((by - 1) * (self.basis.T @ vector))


def _principal(factor: Float[Array, "weight rank"]) -> tuple[Float[Array, "weight rank"], Float[Array, " rank"]]:
    """U and c with U diag(c) Uᵀ = B Bᵀ, from the small matrix BᵀB; directions without length are left out by c = 0."""
    squares, turn = jnp.linalg.eigh(factor.T @ factor)
    squares = jnp.maximum(squares, 0)
    # Below rounding a direction of B Bᵀ is noise: normalising it would not give a unit vector.
    alive = squares > squares[-1] * len(squares) * jnp.finfo(factor.dtype).eps
    lengths = jnp.sqrt(jnp.where(alive, squares, 1))
    return jnp.where(alive[None, :], factor @ turn / lengths[None, :], 0), jnp.where(alive, squares, 0)
