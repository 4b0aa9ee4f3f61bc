"""The information about one matrix of weights as a Kronecker product.

    H ≈ c · A ⊗ G,      A = Σ a aᵀ over inputs,   G = Σ g gᵀ over gradients of the layer's outputs

With a prior of precision P = u ⊗ w, an outer product over rows and columns of the matrix (so one width for weights and
another for biases is possible), the sum is diagonal in one basis:

    H + P = D (Q_A ⊗ Q_G)(Λ_A ⊗ Λ_G + I)(Q_A ⊗ Q_G)ᵀ D,     D = P^½,   Q Λ Qᵀ = the factors with P^½ divided out
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from weightscape.core import Scalar
from weightscape.core.checks import require
from weightscape.inference.gaussian import Covariance, Kronecker
from weightscape.inference.laplace.information import Information, Precision


class KroneckerInformation(Information):
    """c · A ⊗ G over the entries of a matrix, row by row.

    - `inputs`: A, of shape (row, row).  `outputs`: c · G, of shape (column, column).
    - `name`: the layer, for errors.
    """

    inputs: Float[Array, "row row"]
    outputs: Float[Array, "column column"]
    name: str = eqx.field(static=True, default="a layer")

    def covariance(self, prior: Precision) -> Covariance:
        rows, columns = self._split(prior)
        of_rows, q_rows = jnp.linalg.eigh(_whitened(self.inputs, rows))
        of_columns, q_columns = jnp.linalg.eigh(_whitened(self.outputs, columns))
        variances = 1 / (1 + _products(of_rows, of_columns))
        return Kronecker(q_rows, q_columns, variances, 1 / jnp.sqrt(rows[:, None] * columns[None, :]))

    def log_determinant(self, prior: Precision) -> Scalar:
        rows, columns = self._split(prior)
        of_rows = jnp.linalg.eigvalsh(_whitened(self.inputs, rows))
        of_columns = jnp.linalg.eigvalsh(_whitened(self.outputs, columns))
        return jnp.sum(jnp.log1p(_products(of_rows, of_columns))) + jnp.sum(jnp.log(prior))

    def scaled(self, factor: Scalar) -> "KroneckerInformation":
        return KroneckerInformation(self.inputs, factor * self.outputs, self.name)

    def least(self, prior: Precision) -> Scalar:
        return jnp.min(prior)

    def _split(self, prior: Precision) -> tuple[Float[Array, " row"], Float[Array, " column"]]:
        """u and w with P = u ⊗ w."""
        matrix = prior.reshape(len(self.inputs), len(self.outputs))
        rows, columns = matrix[:, 0], matrix[0] / matrix[0, 0]
        if not isinstance(matrix, Tracer):
            error = float(np.max(np.abs(np.asarray(rows[:, None] * columns[None, :] / matrix - 1))))
            asked = f"The prior's precision of {self.name} must be an outer product over its inputs and units"
            remedy = 'Use structure "by_layer" or "diagonal", or a prior with one scale for each leaf.'
            require(error < 1e-3, asked, f"one that differs from it by {error:.1%}", remedy)
        return rows, columns


def _whitened(factor: Float[Array, "side side"], precision: Float[Array, " side"]) -> Float[Array, "side side"]:
    scale = 1 / jnp.sqrt(precision)
    return scale[:, None] * factor * scale[None, :]


def _products(left: Float[Array, " row"], right: Float[Array, " column"]) -> Float[Array, "row column"]:
    # Rounding leaves tiny negative eigenvalues of matrices that have none.
    return jnp.maximum(left, 0)[:, None] * jnp.maximum(right, 0)[None, :]
