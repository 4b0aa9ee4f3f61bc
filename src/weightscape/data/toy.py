"""Toy problems whose answers are known.

`linear_gaussian`  y = X w + ε with w ~ N(0, prior_scale² I) and ε ~ N(0, noise²): posterior and evidence
                   in closed form (`linear_gaussian_posterior`).
`cubic`            y = x³ + 3ε, inputs with a gap in the middle, tested beyond both ends.
`moons`            two interleaved half circles: a curved class boundary.
`line`             y = 3x, without noise unless asked.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_factor, cho_solve
from sklearn.datasets import make_moons

from weightscape.core.checks import require, require_count, require_positive
from weightscape.data.batch import Batch
from weightscape.data.dataset import Dataset, from_arrays, scaled_parts


class LinearGaussianAnswer(NamedTuple):
    """The posterior N(mean, covariance) over the weights, and log p(y | X)."""

    mean: Float[np.ndarray, " weight"]
    covariance: Float[np.ndarray, "weight weight"]
    log_evidence: float


def linear_gaussian(n: int = 50, d: int = 3, noise: float = 0.5, seed: int = 0, *, prior_scale: float = 1.0) -> Dataset:
    """Linear regression with correlated inputs; `n` rows to train on and as many to test.

    Not scaled, so that the closed form holds for the numbers as they are.
    """
    require_count("`n`", n)
    require_count("`d`", d)
    require_positive("`noise`", noise)
    require_positive("`prior_scale`", prior_scale)
    generator = np.random.default_rng(seed)
    mixing = np.eye(d) + 0.5 * generator.standard_normal((d, d))
    x = generator.standard_normal((2 * n, d)) @ mixing
    weights = prior_scale * generator.standard_normal(d)
    y = x @ weights + noise * generator.standard_normal(2 * n)
    names = tuple(f"x{i}" for i in range(d))
    return Dataset("linear_gaussian", "regression", Batch(x[:n], y[:n]), Batch(x[n:], y[n:]), inputs=names)


def linear_gaussian_posterior(
    x: np.ndarray, y: np.ndarray, noise: float, prior_scale: float, *, bias: bool = False
) -> LinearGaussianAnswer:
    """Posterior and evidence of y = X w + ε, ε ~ N(0, noise²), w ~ N(0, prior_scale²).

        Λ = XᵀX / noise² + I / prior_scale²,   mean = Λ⁻¹ Xᵀy / noise²,   covariance = Λ⁻¹
        2 log p(y) = −n log(2π noise²) − d log prior_scale² − log|Λ| − |y|² / noise² + meanᵀ Λ mean

    With `bias`, a column of ones is put first and the bias has the same prior. Computed in float64.
    Bishop, Pattern Recognition and Machine Learning, equations 3.50, 3.51 and 3.86.
    """
    inputs, targets = np.asarray(x, np.float64), np.asarray(y, np.float64)
    design = np.column_stack([np.ones(len(inputs)), inputs]) if bias else inputs
    num_rows, num_weights = design.shape
    precision = design.T @ design / noise**2 + np.eye(num_weights) / prior_scale**2
    factor = cho_factor(precision, lower=True)
    mean = cho_solve(factor, design.T @ targets / noise**2)
    log_determinant = 2 * np.sum(np.log(np.diag(factor[0])))
    fit = targets @ targets / noise**2 - mean @ precision @ mean
    sizes = num_rows * np.log(2 * np.pi * noise**2) + 2 * num_weights * np.log(prior_scale)
    log_evidence = -0.5 * (sizes + log_determinant + fit)
    return LinearGaussianAnswer(mean, cho_solve(factor, np.eye(num_weights)), float(log_evidence))


def cubic(n: int = 80, noise: float = 3.0, seed: int = 0) -> Dataset:
    """A noisy cubic: y = x³ + noise · ε with x in [−4, −1] ∪ [1, 4].

    The test part is noisy too and spans [−6, 6], beyond both ends and across the gap.
    """
    require_count("`n`", n, least=2)
    generator = np.random.default_rng(seed)
    sides = np.where(np.arange(n) % 2 == 0, -1.0, 1.0)
    x_train = sides * generator.uniform(1.0, 4.0, n)
    x_test = np.linspace(-6.0, 6.0, 121)
    train, test = [_with_noise(x, x**3, noise, generator) for x in (x_train, x_test)]
    return Dataset("cubic", "regression", *scaled_parts(train, test, "regression"), inputs=("x",))


def line(n: int = 60, noise: float = 0.0, seed: int = 0) -> Dataset:
    """A line: y = 3x + noise · ε with x uniform on [−1, 1]."""
    require_count("`n`", n, least=2)
    require(noise >= 0, "`noise` of line must not be negative", noise, "Pass zero or a positive number.")
    generator = np.random.default_rng(seed)
    x_train, x_test = generator.uniform(-1.0, 1.0, n), np.linspace(-1.0, 1.0, 41)
    train, test = [_with_noise(x, 3.0 * x, noise, generator) for x in (x_train, x_test)]
    name = "line" if noise == 0 else "noisy_line"
    return Dataset(name, "regression", *scaled_parts(train, test, "regression"), inputs=("x",))


def noisy_line(n: int = 60, noise: float = 0.3, seed: int = 0) -> Dataset:
    """`line` with noise."""
    return line(n, noise, seed)


def moons(n: int = 200, noise: float = 0.15, seed: int = 0) -> Dataset:
    """Two interleaved half circles with Gaussian noise on the inputs; a fifth is set aside for testing."""
    require_count("`n`", n, least=10)
    x, y = make_moons(n, noise=noise, random_state=seed)
    return from_arrays(np.asarray(x), np.asarray(y), "classification", seed=seed, name="moons")


def _with_noise(
    x: np.ndarray, mean: np.ndarray, noise: float, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    return x[:, None], mean + noise * generator.standard_normal(len(x))
