"""A diagonal plus a few directions, fitted to positions and gradients by their Fisher divergence.

For a Gaussian with covariance Σ the gradient at x is −Σ⁻¹(x − μ), so positions have covariance Σ and gradients Σ⁻¹;
the geometric mean C_x # C_g⁻¹ of what n of them show is Σ exactly, as soon as they span the space. Here:

1. D^½ = (var x / var g)^¼, coordinate by coordinate; x ← D^-½ x and g ← D^½ g.
2. A basis Q of the k leading directions of x, where the posterior is wide, and of g, where it is narrow.
3. In that basis C_x # C_g⁻¹ = L (Lᵀ C_g L)^-½ Lᵀ with L Lᵀ = C_x, of which U and Λ are the k eigenvectors and
   eigenvalues whose |log λ| is largest. Those between ½ and 2 are set to 1: they would gain nothing.
4. All again, with D from what is left of x and g across U: one narrow direction across the axes makes every gradient
   large, and a D from all of them would be wrong in every other direction.

All roots come from QR and singular values, never from a product such as XᵀX, so single precision is enough.

Reference: Seyboldt et al. (2026), arXiv:2603.18845, algorithm 1. We rank by |log λ|, since |λ − 1| would prefer wide
directions to narrow ones; the ridge is ours, and so is step 4.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from weightscape.inference.mcmc.kernels import LowRankInverseMassMatrix

SHRINKAGE = 5.0
"""How many imagined draws pull an estimate towards its default, as in Stan."""

_RIDGE = 1e-3  # the variance of the imagined draws, in coordinates where one is usual
_LEAST_GAIN = 2.0
_WHOLE_SHARE = 1e-4  # how much of all of x and g counts beside what is left, where that may be nothing


def estimate_low_rank(
    positions: Float[Array, "row weight"], gradients: Float[Array, "row weight"], num_rows: Int[Array, ""], rank: int
) -> LowRankInverseMassMatrix:
    """M⁻¹ from the first `num_rows` rows; M⁻¹ = I where they do not vary."""
    # Chain by chain: jaxlib 0.10 spreads a batch of LAPACK calls over the threads that also run the devices and waits
    # for them there, so that two devices which do so at once wait for each other for ever.
    one = jax.custom_batching.sequential_vmap(lambda x, g, count: tuple(_estimate(x, g, count, rank)))
    return LowRankInverseMassMatrix(*one(positions, gradients, num_rows))


def _estimate(
    positions: Float[Array, "row weight"], gradients: Float[Array, "row weight"], num_rows: Int[Array, ""], rank: int
) -> LowRankInverseMassMatrix:
    x, g = _centred(positions, num_rows), _centred(gradients, num_rows)
    ridge = SHRINKAGE * _RIDGE / (num_rows + SHRINKAGE)
    scale = _scale(x, g)
    first = _correct(x / scale[None, :], g * scale[None, :], ridge, rank)
    if rank < x.shape[1]:
        scale *= _scale(_left(x / scale[None, :], first[0]), _left(g * scale[None, :], first[0]))
    return LowRankInverseMassMatrix(scale, *_correct(x / scale[None, :], g * scale[None, :], ridge, rank))


def _correct(
    x: Float[Array, "row weight"], g: Float[Array, "row weight"], ridge: Array, rank: int
) -> tuple[Float[Array, "weight direction"], Float[Array, " direction"]]:
    """U and the diagonal of Λ for scaled positions and gradients."""
    basis = _leading_directions(x, g, rank)
    factor = _geometric_mean_factor(_root(x @ basis, ridge), _root(g @ basis, ridge))
    directions, singular, _ = jnp.linalg.svd(factor)
    distance = 2 * jnp.abs(jnp.log(singular))  # |log λ|
    chosen = jnp.argsort(-distance)[:rank]
    eigenvalues = jnp.where(distance[chosen] > jnp.log(_LEAST_GAIN), singular[chosen] ** 2, 1.0)
    return (basis @ directions)[:, chosen], eigenvalues


def _left(
    rows: Float[Array, "row weight"], directions: Float[Array, "weight direction"]
) -> Float[Array, "both weight"]:
    """What is left of rows across the directions, with a little of the whole."""
    left = rows - (rows @ directions) @ directions.T
    return jnp.concatenate([left, jnp.sqrt(_WHOLE_SHARE) * rows])


def _centred(rows: Float[Array, "row weight"], num_rows: Int[Array, ""]) -> Float[Array, "row weight"]:
    """Rows r_i with Σ_i r_i r_iᵀ the covariance of the first `num_rows`; the others are zero."""
    used = (jnp.arange(len(rows)) < num_rows)[:, None]
    count = jnp.maximum(num_rows, 1)
    mean = jnp.sum(jnp.where(used, rows, 0.0), axis=0, keepdims=True) / count
    return jnp.where(used, rows - mean, 0.0) / jnp.sqrt(count)


def _scale(x: Float[Array, "row weight"], g: Float[Array, "row weight"]) -> Float[Array, " weight"]:
    """D^½; one for a coordinate that did not move or has no gradient."""
    # Norms before their ratio: a product of variances can leave the range of single precision.
    spread, steepness = jnp.linalg.norm(x, axis=0), jnp.linalg.norm(g, axis=0)
    varies = (spread > 0) & (steepness > 0)
    return jnp.where(varies, jnp.sqrt(spread / jnp.where(varies, steepness, 1.0)), 1.0)


def _leading_directions(
    x: Float[Array, "row weight"], g: Float[Array, "row weight"], rank: int
) -> Float[Array, "weight direction"]:
    """An orthonormal basis of the `rank` leading directions of each."""
    wide, steep = (jnp.linalg.svd(rows, full_matrices=False)[2][:rank] for rows in (x, g))
    return jnp.linalg.qr(jnp.concatenate([wide, steep]).T)[0]


def _root(rows: Float[Array, "row direction"], ridge: Array) -> Float[Array, "direction direction"]:
    """R with RᵀR = rowsᵀ rows + ridge · I."""
    return jnp.linalg.qr(jnp.concatenate([rows, jnp.sqrt(ridge) * jnp.eye(rows.shape[1])]), mode="r")


def _geometric_mean_factor(
    root_x: Float[Array, "direction direction"], root_g: Float[Array, "direction direction"]
) -> Float[Array, "direction direction"]:
    """F with F Fᵀ = C_x # C_g⁻¹, for C_x = root_xᵀ root_x and C_g = root_gᵀ root_g.

    With L = root_xᵀ and root_g L = A S Bᵀ the middle factor is (Lᵀ C_g L)^-½ = B S⁻¹ Bᵀ, so F = L B S^-½.
    """
    _, singular, right = jnp.linalg.svd(root_g @ root_x.T)
    return root_x.T @ right.T / jnp.sqrt(singular)[None, :]
