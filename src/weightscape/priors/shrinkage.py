"""Shrinkage: what a prior makes of one weight that is observed with noise.

    θ ~ p(θ),    y ~ N(θ, s²),    E[θ | y] = ∫ θ N(y; θ, s²) p(θ) dθ / p(y)

The pull of the prior is y − E[θ | y]. A normal prior pulls in proportion to y, however far out; a Laplace prior by
s²/b at most; a Student-t lets a large y go, with a pull that falls as (ν+1) s²/y. By Tweedie's formula the pull is
−s² d/dy log p(y).

The mode is another matter: under Laplace it is the soft threshold, exactly zero for |y| ≤ s²/b, while the posterior is
a density, in which no single value has any probability.

Reference: Efron (2011), Tweedie's formula and selection bias, equation 1.4.
"""

import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from weightscape.core.checks import require_positive, require_type
from weightscape.core.numbers import number
from weightscape.core.types import Scalar
from weightscape.priors.prior import RealPrior

_NUM_NODES = 400
_REACH = 12.0
"""How many s beyond 0 and y the integral goes: what is left out is below exp(−72)."""


class Shrinkage(NamedTuple):
    """The posterior of θ at each y: its mean and standard deviation, and log p(y)."""

    mean: Float[Array, " observation"]
    std: Float[Array, " observation"]
    log_evidence: Float[Array, " observation"]


def shrinkage(prior: RealPrior, y: Float[Array, " observation"], noise: ArrayLike) -> Shrinkage:
    """The posterior of a single weight given one observation y ~ N(θ, s²), by quadrature.

    - `prior`: any prior of a single weight whose density falls away from zero.  `y`: observations, each on its own.
    - `noise`: s.

    Example:
    >>> from weightscape.priors.normal import Normal
    >>> float(shrinkage(Normal(1.0), jnp.array([3.0]), 1.0).mean[0].round(3))
    1.5
    """
    remedy = "Use a prior without latent variables, such as Normal, Laplace or StudentT."
    asked = "`prior` of shrinkage must be a density of a single weight"
    require_type(isinstance(prior, RealPrior), asked, type(prior).__name__, remedy)
    require_positive("`noise` of shrinkage", noise)
    return _shrink_each(prior, y, number(noise))


def soft_threshold(y: Float[Array, " observation"], scale: ArrayLike, noise: ArrayLike) -> Float[Array, " observation"]:
    """The mode of θ under Laplace(b): sign(y) max(|y| − s²/b, 0).  `scale`: b.  `noise`: s."""
    return jnp.sign(y) * jnp.maximum(jnp.abs(y) - noise**2 / scale, 0)


@eqx.filter_jit
def _shrink_each(prior: RealPrior, y: Float[Array, " observation"], noise: Scalar) -> Shrinkage:
    return Shrinkage(*jax.vmap(lambda observed: _shrink(prior, observed, noise))(y))


def _shrink(prior: RealPrior, y: Scalar, noise: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    theta, weights = _nodes(y, noise)
    log_likelihood = -0.5 * ((y - theta) / noise) ** 2 - jnp.log(noise) - 0.5 * np.log(2 * np.pi)
    log_joint = jax.vmap(prior.log_density)(theta) + log_likelihood + jnp.log(weights)
    log_evidence = jax.nn.logsumexp(log_joint)
    posterior = jnp.exp(log_joint - log_evidence)
    mean = posterior @ theta
    return mean, jnp.sqrt(posterior @ (theta - mean) ** 2), log_evidence


def _nodes(y: Scalar, noise: Scalar) -> tuple[Float[Array, " node"], Float[Array, " node"]]:
    """Gauss–Legendre nodes and weights on both sides of zero.

    They are split there because Laplace has its kink, and a narrow prior its peak, at zero: nodes crowd at the ends.
    """
    unit, weights = (jnp.asarray(part, y.dtype) for part in _unit_nodes())
    low, high = jnp.minimum(0, y) - _REACH * noise, jnp.maximum(0, y) + _REACH * noise
    theta = jnp.concatenate([low * (1 - unit) / 2, high * (1 + unit) / 2])
    return theta, jnp.concatenate([-low * weights / 2, high * weights / 2])


@functools.cache
def _unit_nodes() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [−1, 1]; they are eigenvalues of a matrix, which takes a moment to find."""
    return np.polynomial.legendre.leggauss(_NUM_NODES)
