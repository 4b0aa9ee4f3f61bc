"""Which weights a symmetry exchanges: numbers that belong to weights, and not to networks, must be equal on these."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from weightscape.metanet import Features
from weightscape.symmetry import Symmetry


def orbits(symmetry: Symmetry) -> Int[np.ndarray, " weight"]:
    """A number for each entry of the flat vector; equal for weights that an element can exchange."""
    features, first, parts = Features(symmetry), 0, []
    for place in features.places:
        numbers = jnp.arange(first, first + place.num_channels, dtype=float)
        parts.append(jnp.broadcast_to(numbers, (*place.sizes, place.num_channels)))
        first += place.num_channels
    return np.asarray(symmetry.layout.flatten(features.join(tuple(parts)))).astype(np.int32)
