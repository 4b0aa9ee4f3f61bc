"""Families of one number, from which a mean-field approximation is made by location and scale.

    w = μ + s F⁻¹(u),   u ~ Uniform(0, 1),        log q(w) = log f((w − μ) / s) − log s

F is the family's distribution function and f its density, symmetric about zero. A heavy tail is a statement about
weights that the data say little about.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.scipy.special import betainc, digamma, gammaln, ndtri
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, Scalar, registered
from weightscape.core.checks import require, require_positive
from weightscape.core.numbers import number
from weightscape.priors.heavy import draw_student_t

_BISECTIONS = 70


class Family(eqx.Module):
    """A standard density f over ℝ, symmetric about zero, with finite variance."""

    @abc.abstractmethod
    def quantile(self, u: Float[Array, "..."]) -> Float[Array, "..."]:
        """F⁻¹(u), entry by entry."""

    @abc.abstractmethod
    def log_density(self, z: Float[Array, "..."]) -> Float[Array, "..."]:
        """log f(z), entry by entry."""

    @abc.abstractmethod
    def sample(self, key: PRNGKey, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        """Independent entries z ~ f."""

    @abc.abstractmethod
    def variance(self) -> Scalar:
        """The variance of f."""

    @abc.abstractmethod
    def entropy(self) -> Scalar:
        """−E[log f(z)], in nats."""


@registered("variational.Normal")
class Normal(Family):
    """f = N(0, 1)."""

    def quantile(self, u: Float[Array, "..."]) -> Float[Array, "..."]:
        return ndtri(u)

    def log_density(self, z: Float[Array, "..."]) -> Float[Array, "..."]:
        return -0.5 * z**2 - 0.5 * float(np.log(2 * np.pi))

    def sample(self, key: PRNGKey, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        return self.quantile(_inner_uniform(key, shape, dtype))

    def variance(self) -> Scalar:
        return jnp.ones(())

    def entropy(self) -> Scalar:
        return number(0.5 * (1 + np.log(2 * np.pi)))


@registered("variational.Logistic")
class Logistic(Family):
    """f(z) = e^−z / (1 + e^−z)²: a little heavier than the normal."""

    def quantile(self, u: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.log(u) - jnp.log1p(-u)

    def log_density(self, z: Float[Array, "..."]) -> Float[Array, "..."]:
        return jax.nn.log_sigmoid(z) + jax.nn.log_sigmoid(-z)

    def sample(self, key: PRNGKey, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        return self.quantile(_inner_uniform(key, shape, dtype))

    def variance(self) -> Scalar:
        return number(np.pi**2 / 3)

    def entropy(self) -> Scalar:
        return number(2.0)


@registered("variational.Laplace")
class Laplace(Family):
    """f(z) = e^−|z| / 2."""

    def quantile(self, u: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.where(u < 0.5, jnp.log(2 * u), -jnp.log(2 * (1 - u)))

    def log_density(self, z: Float[Array, "..."]) -> Float[Array, "..."]:
        return -jnp.abs(z) - float(np.log(2))

    def sample(self, key: PRNGKey, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        return self.quantile(_inner_uniform(key, shape, dtype))

    def variance(self) -> Scalar:
        return number(2.0)

    def entropy(self) -> Scalar:
        return number(1 + np.log(2))


@registered("variational.StudentT")
class StudentT(Family):
    """The t density with ν degrees of freedom.

    - `degrees`: ν, above 2: with infinite variance a normal prior would be infinitely far from q.
    """

    degrees: Float[Array, ""] = eqx.field(default=5.0, converter=number)

    def __check_init__(self):
        require_positive("`degrees` of StudentT", self.degrees)
        if not isinstance(self.degrees, Tracer):
            came = float(self.degrees)
            require(came > 2, "`degrees` of the family StudentT must be above 2", came, "Choose a lighter tail.")

    def quantile(self, u: Float[Array, "..."]) -> Float[Array, "..."]:
        """F⁻¹ by bisection over asinh |t|, then two steps of Newton; `sample` does not need it."""
        tail = jnp.minimum(u, 1 - u)

        def halve(_, bounds):
            low, high = bounds
            middle = 0.5 * (low + high)
            beyond = self._upper_tail(jnp.sinh(middle)) > tail
            return jnp.where(beyond, middle, low), jnp.where(beyond, high, middle)

        most = 0.9 * np.log(float(jnp.finfo(u.dtype).max)) / 2  # (sinh of it)² is still a number
        low, high = jax.lax.fori_loop(0, _BISECTIONS, halve, (jnp.zeros_like(u), jnp.full_like(u, most)))
        t = jnp.sinh(0.5 * (low + high))
        for _ in range(2):
            t = t + (self._upper_tail(t) - tail) * jnp.exp(-self.log_density(t))
        return jnp.sign(u - 0.5) * t

    def log_density(self, z: Float[Array, "..."]) -> Float[Array, "..."]:
        half = (self.degrees + 1) / 2
        log_normaliser = gammaln(self.degrees / 2) - gammaln(half) + 0.5 * jnp.log(self.degrees * np.pi)
        return -half * jnp.log1p(z**2 / self.degrees) - log_normaliser

    def sample(self, key: PRNGKey, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        return draw_student_t(key, self.degrees.astype(dtype), shape, dtype)

    def variance(self) -> Scalar:
        return self.degrees / (self.degrees - 2)

    def entropy(self) -> Scalar:
        half = (self.degrees + 1) / 2
        log_beta = gammaln(self.degrees / 2) + gammaln(0.5) - gammaln(half)
        return half * (digamma(half) - digamma(self.degrees / 2)) + 0.5 * jnp.log(self.degrees) + log_beta

    def _upper_tail(self, t: Float[Array, "..."]) -> Float[Array, "..."]:
        """P(T > t) for t ≥ 0."""
        return 0.5 * betainc(self.degrees / 2, jnp.full_like(t, 0.5), self.degrees / (self.degrees + t**2))


def _inner_uniform(key: PRNGKey, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """u ∈ (0, 1) at the middles of equal cells: never 0 or 1, and 1 − u has the same law."""
    # A least value near zero instead, as is common, would be an atom far out in the tail.
    return jax.random.uniform(key, shape, dtype) + jnp.finfo(dtype).eps / 2
