"""What it costs to pair a source with a target: squared distances, in flat space or along geodesics."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.config import registered
from weightscape.geometry import Manifold

_NUMBERS = 2**26
"""How many differences of weights are held at once."""


class Costs(eqx.Module):
    """What a pair costs."""

    @abc.abstractmethod
    def of(
        self, sources: Float[Array, "pair weight"], targets: Float[Array, "pair weight"]
    ) -> Float[Array, "pair pair"]:
        """The cost of each source, by row, with each target."""


@registered("flow.SquaredDistances")
class SquaredDistances(Costs):
    """‖x₀ᵢ − x₁ⱼ‖²."""

    def of(
        self, sources: Float[Array, "pair weight"], targets: Float[Array, "pair weight"]
    ) -> Float[Array, "pair pair"]:
        return squared_distances(sources, targets)


class SquaredGeodesics(Costs):
    """d(x₀ᵢ, x₁ⱼ)² on `manifold`."""

    manifold: Manifold

    def of(
        self, sources: Float[Array, "pair weight"], targets: Float[Array, "pair weight"]
    ) -> Float[Array, "pair pair"]:
        to_all = lambda source: jax.vmap(lambda target: self.manifold.distance(source, target) ** 2)(targets)
        at_once = max(1, min(len(sources), _NUMBERS // targets.size))
        return jax.lax.map(to_all, sources, batch_size=at_once)


def squared_distances(
    sources: Float[Array, "pair weight"], targets: Float[Array, "pair weight"]
) -> Float[Array, "pair pair"]:
    """‖x₀ᵢ − x₁ⱼ‖² = ‖x₀ᵢ‖² + ‖x₁ⱼ‖² − 2 ⟨x₀ᵢ, x₁ⱼ⟩, around the mean of the targets, where less cancels."""
    centre = jnp.mean(targets, axis=0, keepdims=True)
    sources, targets = sources - centre, targets - centre
    products = jnp.matmul(sources, targets.T, precision=jax.lax.Precision.HIGHEST)
    norms = jnp.sum(sources**2, axis=1)[:, None] + jnp.sum(targets**2, axis=1)[None, :] - 2 * products
    return jnp.maximum(norms, 0)
