"""A convolution network whose output does not change when the image is turned by 90°.

    F_1 = φ(lift(x) + b_1),    F_l = φ(group(F_{l-1}) + b_l),    outputs = (mean over places and rotations of F_L) W + d

with the lifting and group correlations of p4. Every F_l is equivariant (a turned image gives turned maps, moved on by
one along the axis of rotations); the mean forgets both, so the outputs are invariant, exactly but for rounding.

Reference: Cohen & Welling (2016), Group Equivariant Convolutional Networks.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.checks import require, require_count, shape_of
from weightscape.core.config import registered
from weightscape.core.types import PRNGKey, Tree
from weightscape.networks.activations import Activation, activation
from weightscape.networks.convolution import check_padding, correlate, init_convolution, require_axes
from weightscape.networks.dense import apply_dense, init_dense
from weightscape.networks.network import Network
from weightscape.networks.p4 import NUM_ROTATIONS, group_kernel, lifting_kernel
from weightscape.networks.pooling import Pool
from weightscape.networks.sizes import as_sizes, check_outputs, check_sizes, known_outputs, settle_outputs


@registered("networks.P4ConvNet")
class P4ConvNet(Network):
    """One lifting and then group convolutions, their mean, and a dense layer.

    - `channels`: filters of each convolution; each gives four maps, one for each rotation.
    - `kernel`: places along each side of a filter; odd, so that a rotation maps it to itself.
    - `pool`: after each convolution but the last; None for none. Its window must divide height and width, or it would
      drop places on one side only.
    - `activation`: φ, a function or a name.
    - `padding`: "same" or "valid".
    - `outputs`: the output size; None leaves it open.

    Parameters: `{"conv0": {"kernel": (side, side, in, out), "bias": (out,)}, "conv1": {"kernel": (side, side, 4, in,
    out), "bias": (out,)}, …, "output": {"weight", "bias"}}`.

    Example:
    >>> network = P4ConvNet(channels=(4, 4), outputs=3)
    >>> images = jnp.ones((2, 8, 8, 1))
    >>> network.apply(network.init(jax.random.key(0), images), images).shape
    (2, 3)
    """

    channels: tuple[int, ...] = eqx.field(static=True, default=(8, 8, 8), converter=as_sizes)
    kernel: int = eqx.field(static=True, default=3)
    pool: Pool | None = None
    activation: Activation = eqx.field(static=True, default="relu", converter=activation)
    padding: str = eqx.field(static=True, default="same")
    outputs: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        check_sizes("`channels` of P4ConvNet", self.channels, least=1)
        require_count("`kernel` of P4ConvNet", self.kernel)
        require(self.kernel % 2 == 1, "`kernel` of P4ConvNet must be odd", self.kernel, "Pass 3 or 5.")
        check_padding("P4ConvNet", self.padding)
        check_outputs("P4ConvNet", self.outputs)

    def init(self, key: PRNGKey, x: Float[Array, "point height width channel"]) -> Tree:
        """Weights of variance 1 / inputs, shifts of zero."""
        require_axes("P4ConvNet", x, ("point", "height", "width", "channel"))
        num_outputs = known_outputs("P4ConvNet", self.outputs)
        keys = jax.random.split(key, len(self.channels) + 1)
        sizes = (x.shape[-1], *self.channels)
        params = {}
        for i in range(len(self.channels)):
            shape = (self.kernel, self.kernel) if i == 0 else (self.kernel, self.kernel, NUM_ROTATIONS)
            params[f"conv{i}"] = init_convolution(keys[i], shape, sizes[i], sizes[i + 1], x.dtype)
        return params | {"output": init_dense(keys[-1], sizes[-1], num_outputs, x.dtype)}

    def apply(self, params: Tree, x: Float[Array, "point height width channel"]) -> Float[Array, "point output"]:
        return apply_dense(params["output"], jnp.mean(self.maps(params, x), axis=(1, 2, 3)))

    def maps(
        self, params: Tree, x: Float[Array, "point height width channel"]
    ) -> Float[Array, "point rows columns rotation filter"]:
        """F_L, the equivariant maps before the mean."""
        h = self.activation(self._correlate(x, lifting_kernel(params["conv0"]["kernel"]), params["conv0"]["bias"]))
        for i in range(1, len(self.channels)):
            layer = params[f"conv{i}"]
            h = h if self.pool is None else self._pooled(self.pool, h)
            h = self.activation(self._correlate(h, group_kernel(layer["kernel"]), layer["bias"]))
        return h

    def bind(self, num_outputs: int) -> "P4ConvNet":
        return dataclasses.replace(self, outputs=settle_outputs("P4ConvNet", self.outputs, num_outputs))

    def _correlate(self, h: Array, kernel: Array, bias: Array) -> Array:
        """A correlation of maps, with rotation and channel as one axis while it runs."""
        num_channels = kernel.shape[-1]
        flat = h.reshape((*h.shape[:3], -1))
        matrix = kernel.reshape((*kernel.shape[:2], flat.shape[-1], NUM_ROTATIONS * num_channels))
        z = correlate(flat, matrix, padding=self.padding)
        return z.reshape((*z.shape[:3], NUM_ROTATIONS, num_channels)) + bias[None, None, None, None, :]

    def _pooled(self, pool: Pool, h: Array) -> Array:
        whole = all(size % pool.window == 0 for size in h.shape[1:3])
        asked = f"Height and width in P4ConvNet must be multiples of the window {pool.window}"
        require(whole, asked, shape_of(h)[1:3], "Crop or pad the images, or leave out the pool.")
        pooled = pool.apply(h.reshape((*h.shape[:3], -1)))
        return pooled.reshape((*pooled.shape[:3], *h.shape[3:]))
