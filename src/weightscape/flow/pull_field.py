"""A field as the pull of the data, with the curvature that takes the noise out of its regression (`pull`).

κ(t) is one number for each orbit of weights, linear in log κ between a few times, and trained with the field.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from weightscape.core.types import Scalar
from weightscape.flow.fields import Field
from weightscape.metanet.fixed import Fixed

_NUM_KNOTS = 9
_LEAST = 1e-3


class Curvature(eqx.Module):
    """κ(t) of every weight.

    - `log_knots`: log κ at equally spaced times, for each orbit.  `labels`: the orbit of each weight.
    """

    log_knots: Float[Array, "knot orbit"]
    labels: Int[Array, " weight"]

    @staticmethod
    def of(values: Float[Array, " orbit"], labels: Int[Array, " weight"]) -> "Curvature":
        """The same at all times."""
        return Curvature(jnp.tile(jnp.log(values + _LEAST), (_NUM_KNOTS, 1)), labels)

    def __call__(self, time: Scalar) -> Float[Array, " weight"]:
        """κ at a time."""
        place = time * (_NUM_KNOTS - 1)
        left = jnp.clip(jnp.floor(place).astype(int), 0, _NUM_KNOTS - 2)
        share = place - left
        return jnp.exp((1 - share) * self.log_knots[left] + share * self.log_knots[left + 1])[self.labels]


class PullField(eqx.Module):
    """G(t, z) = r ⊙ f(t, z).

    - `field`: f, of order one.  `scale`: r, the size of the likelihood's gradient in each orbit; not trained.
    """

    field: Field
    scale: Fixed
    curvature: Curvature

    def __call__(self, time: Scalar, z: Float[Array, " weight"]) -> Float[Array, " weight"]:
        """The pull."""
        return self.scale.value * self.field(time, z)
