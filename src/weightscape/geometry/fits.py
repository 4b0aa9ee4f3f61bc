"""What a compact posterior keeps of the covariance of draws.

    diagonal      Σ = diag(s²)
    low rank      Σ = B Bᵀ + diag(s² − diag(B Bᵀ)),      so that W = μ + B z + noise of each weight's own

B holds the r largest principal directions of the draws, each times the standard deviation along it. Both keep the
variance s² of every single weight exactly.
"""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.sparse.linalg import LinearOperator, eigsh

from weightscape.core import registered
from weightscape.core.checks import InputError, require, require_count, require_positive
from weightscape.draws import draw_weights
from weightscape.geometry.moved_draws import Source, as_they_are
from weightscape.geometry.weight_moments import Moments, stretches
from weightscape.inference import Covariance, Diagonal, LowRank

_MATRIX_BYTES = 512 * 2**20


class Fitted(NamedTuple):
    """A covariance, and how many weights were given the floor in place of their own standard deviation."""

    covariance: Covariance
    num_floored: int


class Fit(eqx.Module):
    """A choice of what is kept of the covariance of draws."""

    @abc.abstractmethod
    def fit(self, draws: Source, found: Moments, floor: float | None) -> Fitted:
        """Σ of the draws, whose moments are `found`; `floor` is the least standard deviation of a weight."""


@registered("geometry.DiagonalFit")
class DiagonalFit(Fit):
    """Independent weights."""

    def fit(self, draws: Source, found: Moments, floor: float | None) -> Fitted:
        variance = np.where(found.is_constant, 0, found.variance)
        scale, num_floored = _scale(variance, found, floor, "Pass `floor`, or draws in which every weight varies.")
        return Fitted(Diagonal(scale), num_floored)


@registered("geometry.LowRankFit")
class LowRankFit(Fit):
    """The `rank` largest principal directions, and what they leave of each weight's variance."""

    rank: int = eqx.field(static=True, default=10)

    def __check_init__(self):
        require_count("`rank` of LowRankFit", self.rank)

    def fit(self, draws: Source, found: Moments, floor: float | None) -> Fitted:
        most = min(len(as_they_are(draws)) - 1, found.layout.size)
        asked = f"`rank` of LowRankFit must be below {most}, the number of directions in which draws can vary"
        require(self.rank < most, asked, self.rank, "Pass a smaller rank, or more draws.")
        factor = principal_factor(draws, found, self.rank)
        left = found.variance - np.sum(factor**2, axis=1)
        # What is left of a weight below the rounding of its variance is nothing.
        left = np.where(left <= np.finfo(found.layout.dtype).eps * found.variance, 0, left)
        left = np.where(found.is_constant, 0, left)
        remedy = "Pass a smaller rank, more draws, or `floor`."
        scale, num_floored = _scale(left, found, floor, remedy)
        return Fitted(LowRank.of_covariance(scale, jnp.asarray(factor, found.layout.dtype)), num_floored)


def principal_factor(draws: Source, found: Moments, rank: int) -> Float[np.ndarray, "weight rank"]:
    """B: the principal directions of largest variance as columns, each times its standard deviation."""
    shares = draw_weights(as_they_are(draws))
    weights = shares / (1 - np.sum(shares**2))
    if 8 * len(as_they_are(draws)) * found.layout.size <= _MATRIX_BYTES:
        rows = np.concatenate([np.sqrt(w)[:, None] * (part - found.mean) for part, w in stretches(draws, weights)])
        _, lengths, directions = np.linalg.svd(rows, full_matrices=False)
        return directions[:rank].T * lengths[:rank]
    operator = _DrawsCovariance(draws, found.mean, weights)
    start = np.random.default_rng(0).normal(size=found.layout.size)  # any start does; a fixed one repeats
    tolerance: Any = 1e-10  # SciPy's stubs ask for an int
    variances, directions = eigsh(operator, k=rank, which="LA", v0=start, tol=tolerance)
    order = np.argsort(-variances)
    return directions[:, order] * np.sqrt(np.maximum(variances[order], 0))


class _DrawsCovariance(LinearOperator):
    """v ↦ Σ_i w_i (θ_i − θ̄) (θ_i − θ̄)ᵀ v, reading the draws stretch by stretch: for draws that do not fit in memory."""

    def __init__(self, draws: Source, mean: np.ndarray, weights: np.ndarray):
        self._draws, self._mean, self._weights = draws, mean, weights
        super().__init__(np.float64, (len(mean), len(mean)))

    def _matvec(self, x: np.ndarray) -> np.ndarray:
        vector, total = x.reshape(-1), np.zeros(len(self._mean))
        for rows, weights in stretches(self._draws, self._weights):
            centred = rows - self._mean
            total += (weights * (centred @ vector)) @ centred
        return total


def _scale(
    variance: Float[np.ndarray, " weight"], found: Moments, floor: float | None, remedy: str
) -> tuple[jnp.ndarray, int]:
    """Standard deviations, none below the floor; without a floor an error names the leaves that have none."""
    if floor is None:
        still = {path: int(np.sum(part == 0)) for path, part in found.by_leaf(variance).items() if np.any(part == 0)}
        if still:
            came = ", ".join(f"{count} in {path}" for path, count in still.items())
            raise InputError(
                f"Every weight of a compact posterior must keep a variance of its own, got none for {came}. {remedy}"
            )
        return jnp.asarray(np.sqrt(variance), found.layout.dtype), 0
    require_positive("`floor`", floor)
    scale = np.sqrt(variance)
    return jnp.asarray(np.maximum(scale, floor), found.layout.dtype), int(np.sum(scale < floor))
