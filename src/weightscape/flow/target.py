"""The posterior as a flow sees it: a density over vectors, relative to its source.

    log r(z) = log p(D, θ(z)) + log |det ∂θ/∂z| − log q₀(z)

Where the source is the prior that is the likelihood, but for a constant. For any other source, and for tempered
posteriors, it is what takes the likelihood's place.
"""

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.batches import in_batches
from weightscape.core.types import Scalar
from weightscape.flow.source import Source
from weightscape.posterior import Posterior

_NUM_AT_ONCE = 256


class Target(eqx.Module):
    """A posterior over the vectors of a source."""

    posterior: Posterior
    source: Source

    def log_density(self, z: Float[Array, " weight"]) -> Scalar:
        """log p(D, θ(z)) + log |det ∂θ/∂z|."""
        return self.posterior.log_density(self.source.position(z)) + self.source.log_volume

    def relative(self, z: Float[Array, " weight"]) -> Scalar:
        """log r(z)."""
        return self.log_density(z) - self.source.log_density(z)

    def gradient(self, z: Float[Array, " weight"]) -> Float[Array, " weight"]:
        """∇ log r(z)."""
        return jax.grad(self.relative)(z)

    def gradients(self, z: Float[np.ndarray, "draw weight"]) -> Float[np.ndarray, "draw weight"]:
        """∇ log r of many vectors, a few hundred at a time."""
        return in_batches(self.gradient, min(_NUM_AT_ONCE, len(z)), z)
