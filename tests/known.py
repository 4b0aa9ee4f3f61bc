"""Problems whose answers are known in closed form or by quadrature, and the error of Monte-Carlo averages."""

from typing import NamedTuple

import numpy as np
from scipy import stats

import weightscape as ws


class Linear(NamedTuple):
    """Linear regression with normal prior and known noise: posterior N(mean, covariance), evidence log p(y)."""

    posterior: ws.Posterior
    mean: np.ndarray
    covariance: np.ndarray
    log_evidence: float
    x: np.ndarray
    y: np.ndarray
    noise: float


def linear(noise: float = 0.3, prior_scale: float = 1.0) -> Linear:
    """Three correlated, differently scaled inputs, 40 points."""
    generator = np.random.default_rng(5)
    mixing = np.array([[1.0, 0.8, 0.0], [0.0, 0.6, 0.3], [0.0, 0.0, 2.0]])
    x = generator.normal(size=(40, 3)) @ mixing
    y = x @ np.array([1.0, -2.0, 0.5]) + noise * generator.normal(size=40)
    covariance = np.linalg.inv(x.T @ x / noise**2 + np.eye(3) / prior_scale**2)
    mean = covariance @ x.T @ y / noise**2
    marginal = noise**2 * np.eye(40) + prior_scale**2 * x @ x.T
    log_evidence = stats.multivariate_normal(np.zeros(40), marginal).logpdf(y)
    model = ws.Model(
        ws.networks.MLP(hidden=(), bias=False), ws.likelihoods.Gaussian(noise), ws.priors.Normal(prior_scale)
    )
    return Linear(model.condition(ws.Batch(x, y)), mean, covariance, float(log_evidence), x, y, noise)


class InferredNoise(NamedTuple):
    """One weight and one noise scale: moments of (w, σ) by quadrature."""

    posterior: ws.Posterior
    mean: np.ndarray
    covariance: np.ndarray


def inferred_noise() -> InferredNoise:
    """y ~ N(w x, σ²), w ~ N(0, 1), σ ~ Gamma(1/2, 1), 8 points: skewed in σ."""
    generator = np.random.default_rng(1)
    x = generator.normal(size=(8, 1))
    y = 0.7 * x[:, 0] + 0.4 * generator.normal(size=8)
    w = np.linspace(-1.5, 2.5, 801)[:, None]
    sigma = np.exp(np.linspace(np.log(0.02), np.log(8.0), 1601))[None, :]
    log_density = stats.norm.logpdf(w) + stats.gamma.logpdf(sigma, 0.5) + np.log(sigma)  # dσ = σ d(log σ)
    for point, target in zip(x[:, 0], y, strict=True):
        log_density = log_density + stats.norm.logpdf(target, w * point, sigma)
    mass = np.exp(log_density - log_density.max())
    mass /= mass.sum()
    both = np.stack(np.broadcast_arrays(w, sigma))
    mean = np.einsum("kij,ij->k", both, mass)
    centred = both - mean[:, None, None]
    likelihood = ws.likelihoods.Gaussian(ws.priors.Gamma(0.5, 1.0))
    model = ws.Model(ws.networks.MLP(hidden=(), bias=False), likelihood, ws.priors.Normal(1.0))
    covariance = np.einsum("kij,lij,ij->kl", centred, centred, mass)
    return InferredNoise(model.condition(ws.Batch(x, y)), mean, covariance)


def monte_carlo_error(values: np.ndarray, num_batches: int = 10) -> np.ndarray:
    """The standard error of the mean of (chain, draw, …) values, from the spread of batch means.

    Batches are longer than the chains' memory, so their means are nearly independent.
    """
    length = values.shape[1] // num_batches
    batches = values[:, : length * num_batches].reshape(len(values), num_batches, length, *values.shape[2:])
    means = batches.mean(axis=2).reshape(-1, *values.shape[2:])
    return means.std(axis=0, ddof=1) / np.sqrt(len(means))


def assert_moments(values: np.ndarray, mean: np.ndarray, covariance: np.ndarray, errors: float = 5.0) -> None:
    """Mean and covariance of (chain, draw, dimension) draws lie within `errors` Monte-Carlo errors of the truth."""
    mean_error = monte_carlo_error(values)
    assert np.all(np.abs(values.mean(axis=(0, 1)) - mean) < errors * mean_error)
    centred = values - mean
    products = centred[..., :, None] * centred[..., None, :]
    covariance_error = monte_carlo_error(products)
    assert np.all(np.abs(products.mean(axis=(0, 1)) - covariance) < errors * covariance_error)
    # The errors themselves must be small, or the comparison above would say nothing.
    assert np.all(mean_error < 0.1 * np.sqrt(np.diag(covariance)))
    assert np.all(np.diag(covariance_error) < 0.1 * np.diag(covariance))


def badly_scaled() -> Linear:
    """Linear regression like `linear`, with standard deviations that differ by a factor of a hundred."""
    generator, noise = np.random.default_rng(8), 0.3
    x = generator.normal(size=(40, 3)) * np.array([0.1, 1.0, 10.0])
    x[:, 1] += 0.5 * x[:, 0] + 0.1 * x[:, 2]
    y = x @ np.array([1.0, -2.0, 0.5]) + noise * generator.normal(size=40)
    covariance = np.linalg.inv(x.T @ x / noise**2 + np.eye(3))
    marginal = noise**2 * np.eye(40) + x @ x.T
    log_evidence = stats.multivariate_normal(np.zeros(40), marginal).logpdf(y)
    model = ws.Model(ws.networks.MLP(hidden=(), bias=False), ws.likelihoods.Gaussian(noise), ws.priors.Normal(1.0))
    mean = covariance @ x.T @ y / noise**2
    return Linear(model.condition(ws.Batch(x, y)), mean, covariance, float(log_evidence), x, y, noise)


class TanhPair(NamedTuple):
    """Two weights of a network with two equal modes: moments of (sign(v) w, |v|) by quadrature."""

    posterior: ws.Posterior
    mean: np.ndarray
    covariance: np.ndarray


def tanh_pair() -> TanhPair:
    """y ~ N(v tanh(w x), 0.3²), w and v ~ N(0, 1), 20 points: the same at (−w, −v), curved and skewed."""
    generator = np.random.default_rng(4)
    x = np.linspace(-3.0, 3.0, 20)[:, None]
    y = np.tanh(x[:, 0]) + 0.3 * generator.normal(size=20)
    w, v = np.linspace(-6.0, 6.0, 1201)[:, None], np.linspace(0.0, 6.0, 1201)[None, :]  # v ≥ 0: the folded half
    log_density = stats.norm.logpdf(w) + stats.norm.logpdf(v)
    for point, target in zip(x[:, 0], y, strict=True):
        log_density = log_density + stats.norm.logpdf(target, v * np.tanh(w * point), 0.3)
    mass = np.exp(log_density - log_density.max())
    mass /= mass.sum()
    both = np.stack(np.broadcast_arrays(w, v))
    mean = np.einsum("kij,ij->k", both, mass)
    centred = both - mean[:, None, None]
    network = ws.networks.MLP(hidden=(1,), activation="tanh", bias=False)
    model = ws.Model(network, ws.likelihoods.Gaussian(0.3), ws.priors.Normal(1.0))
    covariance = np.einsum("kij,lij,ij->kl", centred, centred, mass)
    return TanhPair(model.condition(ws.Batch(x, y)), mean, covariance)
