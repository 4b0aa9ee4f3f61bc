"""A transport: a density as the image of a standard normal.

z ~ N(0, I),      position = T(z),      log q(position) = log N(z; 0, I) − log |det ∂T/∂z|
"""

import abc

import equinox as eqx
from jaxtyping import Array, Float

from weightscape.core import Scalar
from weightscape.posterior import Position


class Transport(eqx.Module):
    """A map from standard-normal vectors to positions, which knows the density of its images.

    - `num_weights`: the length of z: the number of weights, or more where log q is that of a path (`diffusion`).
    """

    num_weights: eqx.AbstractVar[int]

    @abc.abstractmethod
    def push(self, z: Float[Array, " weight"]) -> tuple[Position, Scalar]:
        """T(z), and log q there."""
