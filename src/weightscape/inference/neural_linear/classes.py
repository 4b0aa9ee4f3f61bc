"""Laplace's approximation of a linear model over classes, at its own mode.

    log p(y, w) = Σ_i log p(y_i | φ_iᵀ W) + log N(w; 0, Λ⁻¹)

is concave, so Newton's iterations find its one maximum m from anywhere. With H its exact negative Hessian there,

    w | y ≈ N(m, H⁻¹),      log p(y | Φ) ≈ log p(y, m) + (d/2) log 2π − ½ log |H|

With logits f_i = φ_iᵀ W and p = softmax(f), the slope is e_y − p and the curvature diag(p) − p pᵀ; for one logit of
two classes they are y − p and p (1 − p). The likelihood is raised to β and the prior to γ.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import solve_triangular
from scipy.special import expit, log_softmax

from weightscape.core.checks import InputError
from weightscape.inference.neural_linear.conjugate import Powers, Solved

_MOST_ITERATIONS = 200
_DECREMENT = 1e-18
"""gᵀ H⁻¹ g below which one more step ends at the mode: Newton's error squares itself each time."""
_LEAST_STEP = 1e-12


class Local(NamedTuple):
    """log p(y | f) of each point, its slope ∂/∂f, and p, which gives the curvature −∂²/∂f_a ∂f_b = p_a (δ_ab − p_b)."""

    log_density: Float[np.ndarray, " point"]
    slope: Float[np.ndarray, "point output"]
    probabilities: Float[np.ndarray, "point output"]

    def curvature(self, a: int, b: int) -> Float[np.ndarray, " point"]:
        """−∂²/∂f_a ∂f_b log p(y | f)."""
        return self.probabilities[:, a] * (float(a == b) - self.probabilities[:, b])


Link = Callable[[Float[np.ndarray, "point output"], Int[np.ndarray, " point"]], Local]


def categorical(logits: Float[np.ndarray, "point class"], y: Int[np.ndarray, " point"]) -> Local:
    """One logit for each class."""
    log_probabilities = log_softmax(logits, axis=1)
    p = np.exp(log_probabilities)
    rows = np.arange(len(y))
    slope = -p
    slope[rows, y] += 1
    return Local(log_probabilities[rows, y], slope, p)


def bernoulli(logits: Float[np.ndarray, "point 1"], y: Int[np.ndarray, " point"]) -> Local:
    """One logit for two classes: that of class 1."""
    sign = 2.0 * y[:, None] - 1
    log_density = -np.logaddexp(0, -sign * logits)
    return Local(log_density[:, 0], sign * expit(-sign * logits), expit(logits))


class Classification(NamedTuple):
    """The linear model over classes; its weights are W with the features of one output after those of another.

    - `features`: Φ.  `y`: the classes.  `scales`: the prior's standard deviations.  `link`: from logits to classes.
    """

    features: Float[np.ndarray, "point feature"]
    y: Int[np.ndarray, " point"]
    scales: Float[np.ndarray, "feature output"]
    link: Link
    powers: Powers

    def solve(self, start: Float[np.ndarray, "feature output"]) -> Solved:
        """Newton's iterations from `start` to the mode; a step that overshoots is halved."""
        w, decrement = start.T.ravel(), np.inf
        for _ in range(_MOST_ITERATIONS):
            value, slope, precision = self._expand(w)
            root = np.linalg.cholesky(precision).T
            step = solve_triangular(root, solve_triangular(root, slope, trans=1))
            decrement = float(slope @ step)
            if decrement < _DECREMENT:
                return self._solved(w + step)
            w = w + self._step_length(w, step, value, decrement) * step
        raise InputError(
            f"Newton's iterations on the last layer must reach its mode, got a decrement of {decrement:.3g} after "
            f"{_MOST_ITERATIONS} of them. Rescale the inputs, or narrow the prior of the last layer."
        )

    def _solved(self, mode: Float[np.ndarray, " weight"]) -> Solved:
        value, _, precision = self._expand(mode)
        root = np.linalg.cholesky(precision).T
        log_volume = 0.5 * len(mode) * np.log(2 * np.pi) - np.sum(np.log(np.diag(root)))
        return Solved(mode, root, float(value + log_volume))

    def _step_length(self, w: np.ndarray, step: np.ndarray, value: float, decrement: float) -> float:
        """The largest of 1, ½, ¼, … that gains a quarter of what the slope promises (Armijo)."""
        length, rounding = 1.0, 1e-12 * abs(value)
        gains = lambda length: self._log_density(w + length * step) - value + rounding >= 0.25 * length * decrement
        while length > _LEAST_STEP and not gains(length):
            length /= 2
        return length

    def _log_density(self, w: Float[np.ndarray, " weight"]) -> float:
        beta, gamma = self.powers
        log_likelihood = np.sum(self.link(self._logits(w), self.y).log_density)
        scales = self.scales.T.ravel()
        log_prior = -0.5 * np.sum((w / scales) ** 2) - np.sum(np.log(scales * np.sqrt(2 * np.pi)))
        return float(beta * log_likelihood + gamma * log_prior)

    def _expand(self, w: Float[np.ndarray, " weight"]) -> tuple[float, np.ndarray, np.ndarray]:
        """log p(y, w), its gradient, and its negative Hessian."""
        beta, gamma = self.powers
        local = self.link(self._logits(w), self.y)
        prior = gamma / self.scales.T.ravel() ** 2
        slope = beta * (local.slope.T @ self.features).ravel() - prior * w
        num_features, num_outputs = self.scales.shape
        blocks = np.empty((num_outputs, num_features, num_outputs, num_features))
        for a in range(num_outputs):
            for b in range(a + 1):
                block = self.features.T @ (local.curvature(a, b)[:, None] * self.features)
                blocks[a, :, b] = blocks[b, :, a] = block
        return self._log_density(w), slope, beta * blocks.reshape(w.size, w.size) + np.diag(prior)

    def _logits(self, w: Float[np.ndarray, " weight"]) -> Float[np.ndarray, "point output"]:
        return self.features @ w.reshape(self.scales.shape[1], -1).T
