"""Approximations that are wrong in a known way, for posteriors with a known answer."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import stats
from tests.known import linear

import weightscape as ws
from weightscape.core import Scalar
from weightscape.core.layout import Layout
from weightscape.flow.correction import Transport
from weightscape.inference import Full, Gaussian, MixtureOfGaussians


def weights_of(draws) -> np.ndarray:
    """(chain, draw, weight) of a linear network."""
    return np.asarray(draws.params.network["layer0"]["weight"], np.float64)[..., 0]


def position_of(vector) -> dict:
    """The position of a linear network's weights."""
    like = linear().posterior.start_position(jax.random.key(0))
    return Layout.of(like).unflatten(jnp.asarray(vector, float))


def gaussian_near(problem, shift=0.0, stretch=1.0) -> Gaussian:
    """N(mean + shift standard deviations, stretch² covariance) beside the exact posterior of a linear problem."""
    mean = problem.mean + shift * np.sqrt(np.diag(problem.covariance))
    covariance = Full.of_covariance(jnp.asarray(stretch**2 * problem.covariance, float))
    return Gaussian.over(problem.posterior, position_of(mean), covariance)


class Affine(Transport):
    """T(z) = μ + R z, whose images have the density N(μ, R Rᵀ)."""

    gaussian: Gaussian
    num_weights: int = 3

    def push(self, z: Float[Array, " weight"]) -> tuple[dict, Scalar]:
        position = self.gaussian.layout.unflatten(self.gaussian.location + self.gaussian.covariance.root(z))
        return position, self.gaussian.log_density(position)


class Valleys(NamedTuple):
    """One weight with two modes near ±1: evidence, mean, variance and the share of w > 0 by quadrature."""

    posterior: ws.Posterior
    log_evidence: float
    mean: float
    variance: float
    share: float


# Rows (1, 0) and (0, 0.05): the first says w² ≈ 1, the second that w is rather +1 than −1.
_ROWS, _TARGETS, _NOISE = np.array([[1.0, 0.0], [0.0, 0.05]]), np.array([1.0, 0.05]), 0.1


def valleys() -> Valleys:
    """y ~ N(w² x₀ + w x₁, 0.1²), w ~ N(0, 1): HMC never gets from one mode to the other, 50 nats high."""
    apply = lambda params, x: params["w"] ** 2 * x[:, :1] + params["w"] * x[:, 1:]
    network = ws.networks.Function(lambda key, x: {"w": jnp.ones(())}, apply)
    model = ws.Model(network, ws.likelihoods.Gaussian(_NOISE), ws.priors.Normal(1.0))
    w = np.linspace(-2.0, 2.0, 40_001)
    log_density = stats.norm.logpdf(w)
    for row, target in zip(_ROWS, _TARGETS, strict=True):
        log_density = log_density + stats.norm.logpdf(target, w**2 * row[0] + w * row[1], _NOISE)
    mass = np.exp(log_density - log_density.max())
    total = mass.sum()
    log_evidence = float(log_density.max() + np.log(total * (w[1] - w[0])))
    mass = mass / total
    mean = float(mass @ w)
    variance, share = float(mass @ (w - mean) ** 2), float(mass[w > 0].sum())
    return Valleys(model.condition(ws.Batch(_ROWS, _TARGETS)), log_evidence, mean, variance, share)


def two_gaussians(posterior) -> MixtureOfGaussians:
    """Both modes alike, though the posterior prefers one; each a little off and too wide."""
    start = posterior.start_position(jax.random.key(0))
    at = lambda w: jax.tree.map(lambda leaf: jnp.full_like(leaf, w), start)
    wide = Full.of_covariance(jnp.full((1, 1), 0.08**2))
    return MixtureOfGaussians.of([Gaussian.over(posterior, at(w), wide) for w in (-0.97, 1.02)])


class Folded(Transport):
    """A monotone map of one normal number to a mixture: T(z) = a z + b tanh(c z), wrong shares and shapes."""

    layout: Layout
    num_weights: int = 1

    def push(self, z: Float[Array, " weight"]) -> tuple[dict, Scalar]:
        image = lambda z: 0.08 * z + jnp.tanh(6.0 * z)
        slope = 0.08 + 6.0 * (1 - jnp.tanh(6.0 * z) ** 2)
        log_base = jnp.sum(-0.5 * z**2 - 0.5 * jnp.log(2 * jnp.pi))
        return self.layout.unflatten(image(z)), log_base - jnp.sum(jnp.log(slope))
