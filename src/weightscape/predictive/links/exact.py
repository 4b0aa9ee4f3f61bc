"""Gaussian noise around a Gaussian function: everything in closed form.

f ~ N(m, S),    y | f ~ N(f, σ²)        ⇒       y ~ N(m, S + σ²)
epistemic variance diag S,    aleatoric variance σ²
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Shaped

from weightscape.core.checks import InputError, require
from weightscape.core.types import PRNGKey
from weightscape.likelihoods import NO_OWN, Gaussian, Own, as_columns
from weightscape.predictive.function_gaussian import FunctionGaussian, function_at
from weightscape.predictive.linear_network import LinearNetwork
from weightscape.predictive.links.link import Link, one_component
from weightscape.predictive.marginal import MarginalRegression
from weightscape.predictive.mixture import Mixture


class Exact(Link):
    """y ~ N(m, S + σ²), for the `Gaussian` likelihood; vector targets are correlated through S.

    An inferred σ is taken at the approximation's mean, as if it were known. Samples are drawn point by point, each
    from its own law; `FunctionSamples` draws functions that hang together across inputs.
    """

    def mixture(self, network: LinearNetwork, x: Float[np.ndarray, "point ..."], memory: int) -> Mixture:
        likelihood = network.model.likelihood
        if not isinstance(likelihood, Gaussian):
            raise InputError(
                f"Exact must be used with the likelihood Gaussian, got {type(likelihood).__name__}. "
                "Use `FunctionSamples(key)`; for classes also `Probit()` or `LaplaceBridge()`."
            )
        function = function_at(network, x, memory)
        described = _describe(likelihood, function)
        broken = int(np.sum(~np.all(np.isfinite(described), axis=1)))
        asked = "The covariance S + σ² of the targets must be positive definite"
        remedy = "The noise is lost in rounding beside S: turn on `jax_enable_x64`."
        require(broken == 0, asked, f"{broken} points where it is not", remedy)
        return one_component(SmearedGaussian(likelihood), described, function.own)


class SmearedGaussian(MarginalRegression):
    """N(m, T) with T = S + σ² = L Lᵀ; its outputs are (m, diag S, the entries of L).

    L is made once, so that samples and densities need no decomposition.
    """

    likelihood: Gaussian

    def check_targets(self, y: Shaped[Array, "point ..."]) -> None:
        self.likelihood.check_targets(y)

    def log_density(
        self, outputs: Float[Array, "point output"], y: Float[Array, "point ..."], own: Own = NO_OWN
    ) -> Float[Array, " point"]:
        mean, _, root = _parts(outputs)
        white = solve_triangular(root, (as_columns(y) - mean)[..., None], lower=True)[..., 0]
        return jnp.sum(norm.logpdf(white) - jnp.log(jnp.diagonal(root, axis1=1, axis2=2)), axis=1)

    def sample(
        self, key: PRNGKey, outputs: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point target"]:
        mean, _, root = _parts(outputs)
        white = jax.random.normal(key, mean.shape, mean.dtype)
        return mean + jnp.einsum("nij,nj->ni", root, white, precision="highest")

    def mean(self, outputs: Float[Array, "point output"], own: Own = NO_OWN) -> Float[Array, "point target"]:
        return _parts(outputs)[0]

    def aleatoric_variance(
        self, outputs: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point target"]:
        return self.likelihood.variance(_parts(outputs)[0], own)

    def epistemic_variance(
        self, outputs: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point target"]:
        return _parts(outputs)[1]

    def cumulative(
        self, outputs: Float[Array, "point output"], y: Float[Array, "point target"], own: Own = NO_OWN
    ) -> Float[Array, "point target"]:
        return norm.cdf(y, _parts(outputs)[0], jnp.sqrt(self.variance(outputs, own)))


@eqx.filter_jit
def _describe(likelihood: Gaussian, function: FunctionGaussian) -> Float[Array, "point output"]:
    """(m, diag S, L) of each point as one row; not finite where S + σ² has no root."""
    noise = jax.vmap(jnp.diag)(likelihood.variance(function.mean, function.own))
    root = jnp.linalg.cholesky(function.covariance + noise)
    return jnp.concatenate([function.mean, function.variance, root.reshape(len(root), -1)], axis=1)


def _parts(
    outputs: Float[Array, "point output"],
) -> tuple[Float[Array, "point target"], Float[Array, "point target"], Float[Array, "point target target"]]:
    """m, diag S and L from rows of 2t + t² = (t + 1)² − 1 numbers."""
    num_targets = math.isqrt(outputs.shape[1] + 1) - 1
    mean, variance, root = jnp.split(outputs, (num_targets, 2 * num_targets), axis=1)
    return mean, variance, root.reshape(len(outputs), num_targets, num_targets)
