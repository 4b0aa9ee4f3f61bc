"""The covariance of one matrix of weights whose curvature is a Kronecker product.

    Σ⁻¹ = T⁻¹ (Q_A ⊗ Q_G) diag(v)⁻¹ (Q_A ⊗ Q_G)ᵀ T⁻¹,       T = diag(t)

The weights W have shape (inputs, units) and run row by row. Q_A holds eigenvectors over inputs, Q_G over units, v the
variances along their products. The rescaling T lets the rows of W (a bias among them) have priors of different widths.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core import Scalar, registered
from weightscape.core.checks import require_positive
from weightscape.inference.gaussian.covariance import Covariance


@registered("inference.Kronecker")
class Kronecker(Covariance):
    """Σ of vec(W), row by row.

    - `rows`: Q_A, of shape (inputs, inputs).  `columns`: Q_G, of shape (units, units); both orthogonal.
    - `variances`: v, of shape (inputs, units).  `scale`: t, of the same shape.
    """

    rows: Float[Array, "input input"] = eqx.field(converter=jnp.asarray)
    columns: Float[Array, "unit unit"] = eqx.field(converter=jnp.asarray)
    variances: Float[Array, "input unit"] = eqx.field(converter=jnp.asarray)
    scale: Float[Array, "input unit"] = eqx.field(converter=jnp.asarray)

    def __check_init__(self):
        require_positive("`variances` of Kronecker", self.variances)
        require_positive("`scale` of Kronecker", self.scale)

    @property
    def size(self) -> int:
        return self.variances.size

    @property
    def num_free(self) -> int:
        return self.variances.size

    def root(self, white: Float[Array, " weight"]) -> Float[Array, " weight"]:
        spread = jnp.sqrt(self.variances) * white.reshape(self.variances.shape)
        return jnp.ravel(self.scale * (self.rows @ spread @ self.columns.T))

    def root_transpose(self, vector: Float[Array, " weight"]) -> Float[Array, " weight"]:
        scaled = self.scale * vector.reshape(self.variances.shape)
        return jnp.ravel(jnp.sqrt(self.variances) * (self.rows.T @ scaled @ self.columns))

    def whiten(self, vector: Float[Array, " weight"]) -> Float[Array, " weight"]:
        scaled = vector.reshape(self.variances.shape) / self.scale
        return jnp.ravel((self.rows.T @ scaled @ self.columns) / jnp.sqrt(self.variances))

    def diagonal(self) -> Float[Array, " weight"]:
        return jnp.ravel(self.scale**2 * (self.rows**2 @ self.variances @ self.columns.T**2))

    def precision_diagonal(self) -> Float[Array, " weight"]:
        return jnp.ravel((self.rows**2 @ (1 / self.variances) @ self.columns.T**2) / self.scale**2)

    def log_determinant(self) -> Scalar:
        return jnp.sum(jnp.log(self.variances)) + 2 * jnp.sum(jnp.log(self.scale))
