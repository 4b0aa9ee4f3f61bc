"""Exact stationary covariances of stochastic-gradient chains on linear regression.

With posterior mean μ, precision A, residuals e_i = y_i − x_iᵀμ and δ = θ − μ, the estimate from B points drawn with
replacement is ĝ = mean over the batch of u_i(δ), minus (μ + δ)/s², where

    u_i(δ) = (N/σ²) x_i (e_i − x_iᵀδ),      E u = μ/s² − P δ,      P = XᵀX/σ² = A − I/s².

So E ĝ = −A δ, and its covariance given δ is Cov_i(u_i)/B. Averaged over a δ with mean zero and second moment S,

    V(S) = (1/B) (mean_i (N²/σ⁴) x_i x_iᵀ (e_i² + x_iᵀ S x_i)  −  μμᵀ/s⁴  −  P S P).

A step that is linear in (δ, ĝ) therefore maps second moments to second moments by an affine map, whose fixed point is
the stationary covariance: no approximation in the step size, the batch size or the target's scales.
"""

from collections.abc import Callable

import numpy as np
from tests.known import Linear


def gradient_covariance(problem: Linear, batch_size: int | None) -> Callable[[np.ndarray], np.ndarray]:
    """V(S); the prior's scale s is one."""
    x, y, num_points = problem.x, problem.y, len(problem.x)
    if batch_size is None:
        return np.zeros_like
    residual = y - x @ problem.mean
    likelihood_precision = x.T @ x / problem.noise**2

    def covariance(second: np.ndarray) -> np.ndarray:
        spread = residual**2 + np.einsum("ni,ij,nj->n", x, second, x)
        raw = num_points / problem.noise**4 * np.einsum("n,ni,nj->ij", spread, x, x)
        mean = np.outer(problem.mean, problem.mean) + likelihood_precision @ second @ likelihood_precision
        return (raw - mean) / batch_size

    return covariance


def langevin_covariance(problem: Linear, h: float, batch_size: int | None = None) -> np.ndarray:
    """Of δ ← δ + (h/2) ĝ + √h ξ."""
    noise, one = gradient_covariance(problem, batch_size), np.eye(len(problem.mean))
    step = one - h / 2 * np.linalg.inv(problem.covariance)
    return fixed_point(lambda S: step @ S @ step.T + h**2 / 4 * noise(S) + h * one, len(one))


def preconditioned_covariance(problem: Linear, h: float, diagonal: np.ndarray) -> np.ndarray:
    """Of δ ← δ − (h/2) G A δ + √h G^½ ξ, with G the matrix of a `diagonal`."""
    step = np.eye(len(diagonal)) - h / 2 * diagonal[:, None] * np.linalg.inv(problem.covariance)
    return fixed_point(lambda S: step @ S @ step.T + h * np.diag(diagonal), len(diagonal))


def underdamped_covariance(
    problem: Linear, h: float, c: float, batch_size: int | None = None, v: float = 0.0
) -> np.ndarray:
    """Of (δ, r) in δ' = δ + (h/2) r;  r ← ρ r + κ ĝ(δ') + √(1 − ρ² − κ² v) ξ;  δ ← δ' + (h/2) r."""
    noise, rho = gradient_covariance(problem, batch_size), np.exp(-c * h)
    kappa, (drift, kick) = h * (1 + rho) / 2, _underdamped_maps(problem, h, c)
    one = np.eye(len(problem.mean))
    none = np.zeros_like(one)

    def moved(S: np.ndarray) -> np.ndarray:
        middle = drift @ S @ drift.T
        added = kappa**2 * noise(middle[: len(one), : len(one)]) + (1 - rho**2 - kappa**2 * v) * one
        return drift @ (kick @ middle @ kick.T + np.block([[none, none], [none, added]])) @ drift.T

    return fixed_point(moved, 2 * len(one))


def underdamped_autocovariance(problem: Linear, h: float, c: float, lag: int) -> np.ndarray:
    """E δ_{t+lag} δ_tᵀ with exact gradients: the linear map of (δ, r), applied `lag` times to their covariance."""
    drift, kick = _underdamped_maps(problem, h, c)
    step = drift @ kick @ drift
    num_weights = len(problem.mean)
    joint = np.linalg.matrix_power(step, lag) @ underdamped_covariance(problem, h, c)
    return joint[:num_weights, :num_weights]


def _underdamped_maps(problem: Linear, h: float, c: float) -> tuple[np.ndarray, np.ndarray]:
    """Half a drift, and the kick with damping, as matrices on (δ, r)."""
    one, rho = np.eye(len(problem.mean)), np.exp(-c * h)
    none = np.zeros_like(one)
    force = -h * (1 + rho) / 2 * np.linalg.inv(problem.covariance)
    return np.block([[one, h / 2 * one], [none, one]]), np.block([[one, none], [force, rho * one]])


def fixed_point(affine: Callable[[np.ndarray], np.ndarray], size: int) -> np.ndarray:
    """The symmetric S with S = affine(S), by one linear system for its entries."""
    constant = affine(np.zeros((size, size)))
    columns = [affine(unit.reshape(size, size)) - constant for unit in np.eye(size**2)]
    linear = np.stack([column.ravel() for column in columns], axis=1)
    assert np.max(np.abs(np.linalg.eigvals(linear))) < 1, "the step is too large: second moments grow"
    return np.linalg.solve(np.eye(size**2) - linear, constant.ravel()).reshape(size, size)
