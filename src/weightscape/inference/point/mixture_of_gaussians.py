"""A mixture of normal densities with equal weights, one for each member of an ensemble.

q(position) = (1/M) Σ_m N(position; μ_m, Σ_m)

E[position] = μ̄ = (1/M) Σ_m μ_m,      Cov[position] = (1/M) Σ_m (Σ_m + (μ_m − μ̄)(μ_m − μ̄)ᵀ)
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, Scalar
from weightscape.core.checks import require, shape_of
from weightscape.core.facts import Facts
from weightscape.core.layout import Layout
from weightscape.draws import Header
from weightscape.inference.approximation import Approximation
from weightscape.inference.approximation_files import storable
from weightscape.inference.evidence import LogEvidence
from weightscape.inference.gaussian import Covariance, Gaussian
from weightscape.posterior import Position, Posterior


class MixtureOfGaussians(Approximation):
    """(1/M) Σ_m N(μ_m, Σ_m) over positions; made by a method, or by `MixtureOfGaussians.of(gaussians)`.

    - `locations`: μ_m as flat vectors, in the order of `layout`.  `covariances`: Σ_m, each over all weights.
    """

    header: Header
    posterior: Posterior | None
    estimate: LogEvidence | None = eqx.field(static=True)
    facts: Facts = eqx.field(static=True)
    locations: Float[Array, "component weight"]
    covariances: tuple[Covariance, ...]
    layout: Layout

    def __check_init__(self):
        wanted, came = (len(self.covariances), self.layout.size), shape_of(self.locations)
        remedy = "Pass one mean and one covariance for each component, over all weights of the model."
        require(came == wanted, f"`locations` of MixtureOfGaussians must have shape {wanted}", came, remedy)
        require(wanted[0] > 0, "MixtureOfGaussians must have a component", "none", remedy)
        free = [covariance.num_free for covariance in self.covariances]
        asked = f"Components of MixtureOfGaussians must leave none of {wanted[1]} weights fixed"
        require(all(num == wanted[1] for num in free), asked, f"{free} that vary", remedy)

    @staticmethod
    def of(gaussians: Sequence[Gaussian], *, facts: Facts | None = None) -> "MixtureOfGaussians":
        """Gaussians over one model with equal weights."""
        require(len(gaussians) > 0, "MixtureOfGaussians must have a component", "none", "Pass one Gaussian or more.")
        first = gaussians[0]
        locations = jnp.stack([gaussian.location for gaussian in gaussians])
        covariances = tuple(gaussian.covariance for gaussian in gaussians)
        known = (first.header, first.posterior, None, facts or Facts())
        return MixtureOfGaussians(*known, locations, covariances, first.layout)

    @property
    def num_components(self) -> int:
        """M."""
        return len(self.covariances)

    @property
    def components(self) -> tuple[Gaussian, ...]:
        """N(μ_m, Σ_m), each as an approximation of its own."""
        known = (self.header, self.posterior, None, self.facts)
        return tuple(
            Gaussian(*known, location, covariance, self.layout)
            for location, covariance in zip(self.locations, self.covariances, strict=True)
        )

    @property
    def mean(self) -> Position:
        """μ̄ as a position; where components are far apart, a network that none of them holds likely."""
        return self.layout.unflatten(jnp.mean(self.locations, axis=0))

    @property
    def variance(self) -> Position:
        """The variance of each coordinate: within components and between them."""
        within = jnp.mean(jnp.stack([covariance.diagonal() for covariance in self.covariances]), axis=0)
        return self.layout.unflatten(within + jnp.mean(self._deviations() ** 2, axis=0))

    @property
    def is_proper(self) -> bool:
        return True

    def covariance_vector_product(self, vector: Position) -> Position:
        """Cov v, for a tree v shaped like a position."""
        flat, deviations = self.layout.flatten(vector), self._deviations()
        within = jnp.mean(jnp.stack([covariance.times(flat) for covariance in self.covariances]), axis=0)
        return self.layout.unflatten(within + deviations.T @ (deviations @ flat) / self.num_components)

    def sample_position(self, key: PRNGKey) -> Position:
        key_component, key_white = jax.random.split(key)
        chosen = jax.random.randint(key_component, (), 0, self.num_components)
        white = jax.random.normal(key_white, self.locations.shape[1:], self.locations.dtype)
        # All components are computed and one is kept: picking a covariance first would copy it for every draw.
        rooted = jnp.stack([covariance.root(white) for covariance in self.covariances])
        return self.layout.unflatten((self.locations + rooted)[chosen])

    def log_density(self, position: Position) -> Scalar:
        each = jnp.stack([component.log_density(position) for component in self.components])
        return logsumexp(each) - np.log(self.num_components)

    def _deviations(self) -> Float[Array, "component weight"]:
        return self.locations - jnp.mean(self.locations, axis=0, keepdims=True)


def _rebuild(parts: dict[str, Any], header: Header, posterior: Posterior | None) -> MixtureOfGaussians:
    known = (header, posterior, parts["estimate"], parts["facts"])
    return MixtureOfGaussians(*known, jnp.asarray(parts["locations"]), parts["covariances"], header.layout())


storable(
    "MixtureOfGaussians",
    MixtureOfGaussians,
    lambda mixture: {"locations": mixture.locations, "covariances": mixture.covariances},
    _rebuild,
)
