"""Gaussian: the normal approximation of a posterior, with a covariance of any structure.

    q(position) = N(μ, Σ),      log q = −½ |R⁻¹(position − μ)|² − ½ log |Σ| − (d/2) log 2π

It lives in unconstrained positions, so a noise scale that is inferred is log-normal under it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, Scalar
from weightscape.core.checks import require, shape_of
from weightscape.core.facts import Facts
from weightscape.core.layout import Layout
from weightscape.draws import Header
from weightscape.inference.approximation import Approximation
from weightscape.inference.approximation_files import storable
from weightscape.inference.evidence import LogEvidence
from weightscape.inference.gaussian.covariance import Covariance
from weightscape.posterior import Position, Posterior


class Gaussian(Approximation):
    """N(μ, Σ) over positions; made by a method, or by `Gaussian.over(posterior, mean, covariance)`.

    - `location`: μ as a flat vector, in the order of `layout`.  `covariance`: Σ.
    """

    header: Header
    posterior: Posterior | None
    estimate: LogEvidence | None = eqx.field(static=True)
    facts: Facts = eqx.field(static=True)
    location: Float[Array, " weight"]
    covariance: Covariance
    layout: Layout

    def __check_init__(self):
        wanted, came = (self.layout.size,), shape_of(self.location)
        remedy = "Pass a mean and a covariance over all weights of the model."
        require(came == wanted, f"`location` of Gaussian must have shape {wanted}", came, remedy)
        came = self.covariance.size
        require(came == self.layout.size, f"`covariance` of Gaussian must be over {wanted[0]} weights", came, remedy)

    @staticmethod
    def over(
        posterior: Posterior,
        mean: Position,
        covariance: Covariance,
        *,
        estimate: LogEvidence | None = None,
        facts: Facts | None = None,
    ) -> "Gaussian":
        """N(mean, covariance) as an approximation of `posterior`."""
        layout = Layout.of(mean)
        header = Header.of(posterior)
        return Gaussian(header, posterior, estimate, facts or Facts(), layout.flatten(mean), covariance, layout)

    @property
    def mean(self) -> Position:
        """μ as a position."""
        return self.layout.unflatten(self.location)

    @property
    def variance(self) -> Position:
        """The variance of each coordinate."""
        return self.layout.unflatten(self.covariance.diagonal())

    @property
    def is_proper(self) -> bool:
        return self.covariance.num_free == self.layout.size

    def covariance_vector_product(self, vector: Position) -> Position:
        """Σ v, for a tree v shaped like a position."""
        return self.layout.unflatten(self.covariance.times(self.layout.flatten(vector)))

    def sample_position(self, key: PRNGKey) -> Position:
        white = jax.random.normal(key, self.location.shape, self.location.dtype)
        return self.layout.unflatten(self.location + self.covariance.root(white))

    def log_density(self, position: Position) -> Scalar:
        white = self.covariance.whiten(self.layout.flatten(position) - self.location)
        log_volume = self.covariance.log_determinant() + self.covariance.num_free * np.log(2 * np.pi)
        return -0.5 * (jnp.sum(white**2) + log_volume)


def _rebuild(parts: dict[str, Any], header: Header, posterior: Posterior | None) -> Gaussian:
    location = jnp.asarray(parts["location"])
    known = (header, posterior, parts["estimate"], parts["facts"])
    return Gaussian(*known, location, parts["covariance"], header.layout())


storable(
    "Gaussian",
    Gaussian,
    lambda gaussian: {"location": gaussian.location, "covariance": gaussian.covariance},
    _rebuild,
)
