"""The exact posterior and evidence of a linear model with normal prior and normal noise.

    y = Φ w + ε,      ε ~ N(0, σ²),      w ~ N(0, Λ⁻¹),      one w and one σ for each output

    w | y ~ N(m, S),      S⁻¹ = β ΦᵀΦ/σ² + γ Λ,      m = β S Φᵀ y / σ²
    log Z = −½ (β |y − Φm|²/σ² + γ mᵀΛm) − β N log(σ √2π) − γ Σ log(s √2π) + (d/2) log 2π + ½ log |S|

with Λ = diag(s⁻²). For β = γ = 1 the last is log p(y | Φ). The precision is never formed: with R from the QR
decomposition of [√β Φ/σ; √γ Λ^½], S⁻¹ = RᵀR, and |y − Φm| comes out of the same decomposition.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular


class Powers(NamedTuple):
    """β of the likelihood and γ of the prior."""

    likelihood: float
    prior: float


class Solved(NamedTuple):
    """N(m, S) of a set of weights and log Z: `mean` is m, `precision_root` R with S⁻¹ = RᵀR, upper triangular."""

    mean: Float[np.ndarray, " weight"]
    precision_root: Float[np.ndarray, "weight weight"]
    log_evidence: float


class Regression(NamedTuple):
    """What the data say about all outputs, reduced to as many rows as there are unknowns.

    - `num_points`: N.  `features`, `targets`: rows whose inner products are those of Φ and y.
    """

    num_points: int
    features: Float[np.ndarray, "row feature"]
    targets: Float[np.ndarray, "row output"]

    @staticmethod
    def of(features: Float[np.ndarray, "point feature"], y: Float[np.ndarray, "point output"]) -> "Regression":
        """The data in few rows: the triangle of the QR decomposition of [Φ y]."""
        rows = np.asarray(np.linalg.qr(np.column_stack([features, y]), mode="r"))
        return Regression(len(features), rows[:, : features.shape[1]], rows[:, features.shape[1] :])

    def solve(self, i: int, noise: float, scales: Float[np.ndarray, " feature"], powers: Powers) -> Solved:
        """The posterior of output `i` for noise σ = `noise` and prior scales s."""
        beta, gamma = powers
        root_precision = np.sqrt(beta) / noise
        system = np.vstack(
            [
                root_precision * np.column_stack([self.features, self.targets[:, i]]),
                np.column_stack([np.diag(np.sqrt(gamma) / scales), np.zeros(len(scales))]),
            ]
        )
        triangle = np.asarray(np.linalg.qr(system, mode="r"))
        size = len(scales)
        root, misfit = triangle[:size, :size], triangle[size:, size:]
        mean = solve_triangular(root, triangle[:size, size])
        root = root * np.sign(np.diag(root))[:, None]  # the decomposition leaves the signs open
        log_normal = lambda scale: np.log(scale * np.sqrt(2 * np.pi))
        log_density = -0.5 * np.sum(misfit**2) - beta * self.num_points * log_normal(noise)
        log_density -= gamma * np.sum(log_normal(scales))
        log_volume = 0.5 * size * np.log(2 * np.pi) - np.sum(np.log(np.diag(root)))
        return Solved(mean, root, float(log_density + log_volume))
