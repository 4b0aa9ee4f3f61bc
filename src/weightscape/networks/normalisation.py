"""Normalisation of one point by its own statistics, with a learned scale γ and shift β.

    layer:             N(z) = γ (z − mean z) / sqrt(var z + ε) + β
    root mean square:  N(z) = γ z / sqrt(mean z² + ε)

with mean and variance over the channels of one place of one point. Batch statistics are not among the choices: they
tie the points of a batch together, and then the posterior is no function of the weights alone.

References: Ba, Kiros & Hinton (2016), equation 4; Zhang & Sennrich (2019), equation 4.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.checks import require_positive
from weightscape.core.config import registered
from weightscape.core.types import Tree
from weightscape.networks.channels import along_channels


class Normalisation(eqx.Module):
    """A rescaling of each point by statistics of that point alone."""

    @abc.abstractmethod
    def init(self, num_channels: int, dtype: np.dtype) -> Tree:
        """Scales of one and shifts of zero."""

    @abc.abstractmethod
    def apply(self, params: Tree, z: Float[Array, "point ... channel"]) -> Float[Array, "point ... channel"]:
        """N(z)."""


@registered("networks.LayerNorm")
class LayerNorm(Normalisation):
    """N(z) = γ (z − mean z) / sqrt(var z + ε) + β over channels.

    - `epsilon`: ε, which keeps the quotient finite.
    """

    epsilon: float = eqx.field(static=True, default=1e-6)

    def __check_init__(self):
        require_positive("`epsilon` of LayerNorm", self.epsilon)

    def init(self, num_channels: int, dtype: np.dtype) -> Tree:
        return {"scale": jnp.ones((num_channels,), dtype), "shift": jnp.zeros((num_channels,), dtype)}

    def apply(self, params: Tree, z: Float[Array, "point ... channel"]) -> Float[Array, "point ... channel"]:
        centred = z - jnp.mean(z, axis=-1, keepdims=True)
        normalised = centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + self.epsilon)
        return along_channels(params["scale"], z) * normalised + along_channels(params["shift"], z)


@registered("networks.RMSNorm")
class RMSNorm(Normalisation):
    """N(z) = γ z / sqrt(mean z² + ε) over channels; no shift.

    - `epsilon`: ε, which keeps the quotient finite.
    """

    epsilon: float = eqx.field(static=True, default=1e-6)

    def __check_init__(self):
        require_positive("`epsilon` of RMSNorm", self.epsilon)

    def init(self, num_channels: int, dtype: np.dtype) -> Tree:
        return {"scale": jnp.ones((num_channels,), dtype)}

    def apply(self, params: Tree, z: Float[Array, "point ... channel"]) -> Float[Array, "point ... channel"]:
        normalised = z * jax.lax.rsqrt(jnp.mean(z**2, axis=-1, keepdims=True) + self.epsilon)
        return along_channels(params["scale"], z) * normalised
