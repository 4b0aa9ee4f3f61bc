"""Mean field: a density under which all coordinates are independent, of any location-scale family.

    q(position) = Π_i f((position_i − μ_i) / s_i) / s_i

It is what mean-field variational inference ends in. With the normal family that is a `Gaussian`.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, Scalar
from weightscape.core.facts import Facts
from weightscape.core.layout import Layout
from weightscape.draws import Header
from weightscape.inference.approximation import Approximation
from weightscape.inference.approximation_files import storable
from weightscape.inference.evidence import LogEvidence
from weightscape.inference.variational.families import Family
from weightscape.inference.variational.guide import MomentGuide, Vector
from weightscape.posterior import Position, Posterior


class MeanFieldGuide(MomentGuide):
    """The trained form.  `location`: μ.  `log_scale`: log s.  `family`: f, whose numbers stay."""

    location: Float[Array, " weight"]
    log_scale: Float[Array, " weight"]
    family: Family

    def sample_and_log_density(self, key: PRNGKey) -> tuple[Vector, Scalar]:
        family = jax.lax.stop_gradient(self.family)
        standard = family.sample(key, self.location.shape, self.location.dtype)
        return self._from_standard(standard), jnp.sum(family.log_density(standard) - self.log_scale)

    def log_density(self, vector: Vector) -> Scalar:
        standard = (vector - self.location) * jnp.exp(-self.log_scale)
        return jnp.sum(jax.lax.stop_gradient(self.family).log_density(standard) - self.log_scale)

    def variance(self) -> Vector:
        return jax.lax.stop_gradient(self.family).variance().astype(self.location.dtype) * jnp.exp(2 * self.log_scale)

    def entropy(self) -> Scalar:
        return jnp.sum(self.log_scale) + self.log_scale.size * jax.lax.stop_gradient(self.family).entropy()

    def _from_standard(self, standard: Vector) -> Vector:
        return self.location + jnp.exp(self.log_scale) * standard


class MeanField(Approximation):
    """Independent coordinates of a family; made by `MeanFieldVI`.

    - `location`: μ and `scale`: s as flat vectors, in the order of `layout`.  `family`: f.
    """

    header: Header
    posterior: Posterior | None
    estimate: LogEvidence | None = eqx.field(static=True)
    facts: Facts = eqx.field(static=True)
    location: Float[Array, " weight"]
    scale: Float[Array, " weight"]
    family: Family
    layout: Layout

    @property
    def mean(self) -> Position:
        """μ as a position."""
        return self.layout.unflatten(self.location)

    @property
    def variance(self) -> Position:
        """The variance of each coordinate."""
        return self.layout.unflatten(self._guide().variance())

    @property
    def is_proper(self) -> bool:
        return True

    def sample_position(self, key: PRNGKey) -> Position:
        return self.layout.unflatten(self._guide().sample_and_log_density(key)[0])

    def log_density(self, position: Position) -> Scalar:
        return self._guide().log_density(self.layout.flatten(position))

    def _guide(self) -> MeanFieldGuide:
        return MeanFieldGuide(self.location, jnp.log(self.scale), self.family)


def _rebuild(parts: dict[str, Any], header: Header, posterior: Posterior | None) -> MeanField:
    known = (header, posterior, parts["estimate"], parts["facts"])
    numbers = (jnp.asarray(parts["location"]), jnp.asarray(parts["scale"]))
    return MeanField(*known, *numbers, parts["family"], header.layout())


storable(
    "MeanField",
    MeanField,
    lambda density: {"location": density.location, "scale": density.scale, "family": density.family},
    _rebuild,
)
