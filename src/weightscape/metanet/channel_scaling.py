"""Weights shifted and scaled by channel, so that a metanet sees numbers of order one.

    x̂ = (x − m) / s      m, s the mean and standard deviation over networks and units

for each channel of each place. It commutes with the symmetry: the numbers are the same for all units, channels with a
charge are not shifted, and weights are brought to unit scales first.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.types import Tree
from weightscape.geometry import unit_scales
from weightscape.metanet.features import Features, Place
from weightscape.metanet.linear import along_last
from weightscape.symmetry import Symmetry


class ChannelScaling(eqx.Module):
    """Shift and scale of every channel, by place; a metanet does not train them."""

    shifts: tuple[Float[Array, " _"], ...]
    scales: tuple[Float[Array, " _"], ...]

    @staticmethod
    def none(places: tuple[Place, ...]) -> "ChannelScaling":
        """No shift and scale 1."""
        return ChannelScaling(
            tuple(jnp.zeros((place.num_channels,)) for place in places),
            tuple(jnp.ones((place.num_channels,)) for place in places),
        )

    @staticmethod
    def of(symmetry: Symmetry, networks: Tree) -> "ChannelScaling":
        """From some networks: a tree whose leaves have one more axis, the first.

        Channels that are the same in all networks are shifted and not scaled.
        """
        features = Features(symmetry)
        parts = jax.vmap(lambda params: features.split(unit_scales(symmetry, params).params))(networks)
        # A leaf that no symmetry scales comes back as it went in, which may be an array of numpy.
        pairs = [_moments(place, jnp.asarray(part)) for place, part in zip(features.places, parts, strict=True)]
        return ChannelScaling(tuple(shift for shift, _ in pairs), tuple(scale for _, scale in pairs))

    def __call__(self, parts: tuple[Float[Array, "..."], ...]) -> tuple[Float[Array, "..."], ...]:
        """The scaled weights of every place."""
        return tuple(
            (part - along_last(shift, part).astype(part.dtype)) / along_last(scale, part).astype(part.dtype)
            for part, shift, scale in zip(parts, self.shifts, self.scales, strict=True)
        )


def _moments(place: Place, part: Float[Array, "network ..."]) -> tuple[Array, Array]:
    rows = part.reshape(-1, part.shape[-1])
    shift = jnp.zeros((rows.shape[-1],), rows.dtype) if place.is_charged else jnp.mean(rows, axis=0)
    scale = jnp.sqrt(jnp.mean((rows - shift[None]) ** 2, axis=0))
    # Unit scales make some weights 1 in all networks: their deviation is rounding, and must not be blown up to 1.
    least = jnp.finfo(rows.dtype).eps ** 0.5 * jnp.sqrt(jnp.mean(rows**2, axis=0))
    return shift, jnp.where(scale > least, scale, 1.0)
