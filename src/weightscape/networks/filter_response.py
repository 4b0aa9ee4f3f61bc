"""Filter response normalisation: each channel of each point is divided by its own size over space.

    y = γ x / sqrt(ν² + ε) + β,    ν² = mean_{places} x²,    z = max(y, τ)

γ, β and the threshold τ are learned, one for each channel. The last step is the thresholded linear unit; without it
z = y. No statistics cross points, so the network stays a function of weights and input alone.

Reference: Singh & Krishnan (2020), Filter Response Normalization Layer, equations 1 to 3. Their ε may be learned as |ε|
for maps of a single place; here, as in the code of Izmailov et al. (2021), it is fixed.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.checks import require, require_positive, shape_of
from weightscape.core.config import registered
from weightscape.core.types import Tree
from weightscape.networks.channels import along_channels
from weightscape.networks.normalisation import Normalisation


@registered("networks.FilterResponseNorm")
class FilterResponseNorm(Normalisation):
    """γ x / sqrt(ν² + ε) + β over space, then max(·, τ).

    - `threshold`: whether there is a learned τ, which starts at zero; without it the last step is left out.
    - `epsilon`: ε, which keeps the quotient finite.

    Inputs must have spatial axes: (point, …, channel) with at least one in between.
    """

    threshold: bool = eqx.field(static=True, default=True)
    epsilon: float = eqx.field(static=True, default=1e-6)

    def __check_init__(self):
        require_positive("`epsilon` of FilterResponseNorm", self.epsilon)

    def init(self, num_channels: int, dtype: np.dtype) -> Tree:
        zeros = jnp.zeros((num_channels,), dtype)
        affine = {"scale": jnp.ones((num_channels,), dtype), "shift": zeros}
        return affine | {"threshold": zeros} if self.threshold else affine

    def apply(self, params: Tree, z: Float[Array, "point ... channel"]) -> Float[Array, "point ... channel"]:
        remedy = "Use LayerNorm() or RMSNorm() where there is no space."
        require(z.ndim > 2, "FilterResponseNorm needs spatial axes", f"shape {shape_of(z)}", remedy)
        power = jnp.mean(z**2, axis=tuple(range(1, z.ndim - 1)), keepdims=True)
        normalised = z * jax.lax.rsqrt(power + self.epsilon)
        y = along_channels(params["scale"], z) * normalised + along_channels(params["shift"], z)
        return jnp.maximum(y, along_channels(params["threshold"], y)) if self.threshold else y
