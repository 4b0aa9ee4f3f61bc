"""Normal priors with correlated weights.

    vec(θ) ~ N(0, Σ)                        `FullNormal`, Σ given whole: a layer, or a small network
    vec(θ) ~ N(0, B Bᵀ + diag(s²))          `LowRankNormal`, B of shape (weights, rank)
    W ~ MN(0, U, V): vec(W) ~ N(0, U ⊗ V)   `MatrixNormal`, the cheap case for one matrix

vec(θ) runs through the leaves in the order of the tree, each row by row. For a covariance of each layer give one to
each layer through `ByPath`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from weightscape.core import tree
from weightscape.core.checks import InputError, require, require_positive, shape_of
from weightscape.core.config import registered
from weightscape.core.numbers import number
from weightscape.core.types import PRNGKey, Scalar, Tree
from weightscape.priors.prior import NOTHING, RealPrior

_LOG_2PI = float(np.log(2 * np.pi))


def _require_covariance(name: str, covariance: Array) -> None:
    square = covariance.ndim == 2 and covariance.shape[0] == covariance.shape[1]
    require(square, f"{name} must be a square matrix", f"shape {shape_of(covariance)}", "Pass a covariance matrix.")
    if not isinstance(covariance, Tracer):
        smallest = float(np.linalg.eigvalsh(np.asarray(covariance, np.float64))[0])
        require(smallest > 0, f"{name} must be positive definite", f"a smallest eigenvalue of {smallest:.3g}",
                "Add a small multiple of the identity.")  # fmt: skip


def _require_size(name: str, size: int, params: Tree) -> None:
    came = f"{tree.size(params)} weights"
    require(tree.size(params) == size, f"{name} is for {size} weights", came, "Give it the leaves it was made for.")


@registered("priors.FullNormal")
class FullNormal(RealPrior):
    """vec(θ) ~ N(0, Σ).  `covariance`: Σ, of shape (weights, weights)."""

    covariance: Float[Array, "weight weight"] = eqx.field(converter=number)

    def __check_init__(self):
        _require_covariance("`covariance` of FullNormal", self.covariance)

    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        _require_size("FullNormal", len(self.covariance), params)
        return _log_normal(ravel_pytree(params)[0], jnp.linalg.cholesky(self.covariance))

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        _require_size("FullNormal", len(self.covariance), params_like)
        standard, unravel = ravel_pytree(tree.normal_like(key, params_like))
        return unravel((jnp.linalg.cholesky(self.covariance) @ standard).astype(standard.dtype))


@registered("priors.LowRankNormal")
class LowRankNormal(RealPrior):
    """vec(θ) ~ N(0, B Bᵀ + diag(s²)), at a cost of weights × rank².

    - `factor`: B, of shape (weights, rank).  `scale`: s, a number or one for each weight.
    """

    factor: Float[Array, "weight rank"] = eqx.field(converter=number)
    scale: Float[Array, "..."] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        require_positive("`scale` of LowRankNormal", self.scale)

    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        _require_size("LowRankNormal", len(self.factor), params)
        scale = jnp.broadcast_to(self.scale, (len(self.factor),))
        whitened, factor = ravel_pytree(params)[0] / scale, self.factor / scale[:, None]
        # Woodbury and the determinant lemma, in coordinates where the diagonal part is the identity.
        cholesky = jnp.linalg.cholesky(jnp.eye(factor.shape[1], dtype=factor.dtype) + factor.T @ factor)
        explained = solve_triangular(cholesky, factor.T @ whitened, lower=True)
        log_determinant = 2 * jnp.sum(jnp.log(jnp.diag(cholesky))) + 2 * jnp.sum(jnp.log(scale))
        square = whitened @ whitened - explained @ explained
        return -0.5 * (square + log_determinant + len(whitened) * _LOG_2PI)

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        _require_size("LowRankNormal", len(self.factor), params_like)
        key_factor, key_diagonal = jax.random.split(key)
        standard, unravel = ravel_pytree(tree.normal_like(key_diagonal, params_like))
        common = jax.random.normal(key_factor, (self.factor.shape[1],), standard.dtype)
        return unravel((self.scale * standard + self.factor @ common).astype(standard.dtype))


@registered("priors.MatrixNormal")
class MatrixNormal(RealPrior):
    """W ~ MN(0, U, V) for every matrix it is given: Cov(W_ij, W_kl) = U_ik V_jl.

    - `rows`: U, of shape (inputs, inputs).  `columns`: V, of shape (units, units).
    """

    rows: Float[Array, "input input"] = eqx.field(converter=number)
    columns: Float[Array, "unit unit"] = eqx.field(converter=number)

    def __check_init__(self):
        _require_covariance("`rows` of MatrixNormal", self.rows)
        _require_covariance("`columns` of MatrixNormal", self.columns)

    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        rows, columns = jnp.linalg.cholesky(self.rows), jnp.linalg.cholesky(self.columns)
        return tree.total(jax.tree.map(lambda leaf: self._log_density_of(leaf, rows, columns), params))

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        rows, columns = jnp.linalg.cholesky(self.rows), jnp.linalg.cholesky(self.columns)
        jax.tree.map(self._require_shape, params_like)
        coloured = lambda leaf: (rows @ leaf @ columns.T).astype(leaf.dtype)
        return jax.tree.map(coloured, tree.normal_like(key, params_like))

    def _log_density_of(self, leaf: Array, rows: Array, columns: Array) -> Scalar:
        self._require_shape(leaf)
        white = solve_triangular(columns, solve_triangular(rows, leaf, lower=True).T, lower=True)
        num_rows, num_columns = leaf.shape
        log_root = num_columns * jnp.sum(jnp.log(jnp.diag(rows))) + num_rows * jnp.sum(jnp.log(jnp.diag(columns)))
        return -0.5 * jnp.sum(white**2) - log_root - 0.5 * num_rows * num_columns * _LOG_2PI

    def _require_shape(self, leaf: Array) -> None:
        wanted = (len(self.rows), len(self.columns))
        if tuple(leaf.shape) != wanted:
            raise InputError(f"MatrixNormal is for matrices of shape {wanted}, got {tuple(leaf.shape)}. Choose its "
                             "leaves with ByPath.")  # fmt: skip


def _log_normal(flat: Float[Array, " weight"], cholesky: Float[Array, "weight weight"]) -> Scalar:
    white = solve_triangular(cholesky, flat, lower=True)
    return -0.5 * white @ white - jnp.sum(jnp.log(jnp.diag(cholesky))) - 0.5 * len(flat) * _LOG_2PI
