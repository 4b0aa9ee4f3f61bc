"""A convolution network in the manner of LeNet.

    h_0 = x,    h_l = pool(φ(K_l ∗ h_{l-1} + b_l)),    outputs = dense layers of the flattened h_L

Parameters: `{"conv0": {"kernel": (height, width, in, out), "bias": …}, …, "dense0": {"weight": …, "bias": …}, …,
"output": …}`.

Reference: LeCun, Bottou, Bengio & Haffner (1998), section II.B. On images of 32 × 32 × 1, `ConvNet(padding="valid",
outputs=10)` has the layers of LeNet-5 and 61,706 parameters. We differ from the paper as all later work does: every
filter sees all channels, pooling has no weights of its own, the output is linear, and φ is a ReLU by default.
"""

import dataclasses

import equinox as eqx
import jax
from jaxtyping import Array, Float

from weightscape.core.checks import require_count
from weightscape.core.config import registered
from weightscape.core.types import PRNGKey, Tree
from weightscape.networks.activations import Activation, activation
from weightscape.networks.convolution import apply_convolution, check_padding, init_convolution, require_axes
from weightscape.networks.dense import apply_readout, init_readout
from weightscape.networks.network import Network
from weightscape.networks.pooling import AveragePool, Pool
from weightscape.networks.sizes import as_sizes, check_outputs, check_sizes, known_outputs, settle_outputs


@registered("networks.ConvNet")
class ConvNet(Network):
    """Convolutions with pooling, then dense layers.

    - `channels`: filters of each convolution.  `kernel`: places along each side of a filter.
    - `pool`: after each convolution, `AveragePool(2)` or `MaxPool(2)`; None for none.
    - `hidden`: units of each dense hidden layer.
    - `activation`: φ, a function or a name.
    - `padding`: "same" keeps the size of the image, "valid" loses kernel − 1 places.
    - `outputs`: the output size; None leaves it open.

    Example:
    >>> network = ConvNet(channels=(4,), hidden=(8,), outputs=3)
    >>> images = jax.numpy.ones((2, 8, 8, 1))
    >>> network.apply(network.init(jax.random.key(0), images), images).shape
    (2, 3)
    """

    channels: tuple[int, ...] = eqx.field(static=True, default=(6, 16), converter=as_sizes)
    kernel: int = eqx.field(static=True, default=5)
    pool: Pool | None = AveragePool(2)
    hidden: tuple[int, ...] = eqx.field(static=True, default=(120, 84), converter=as_sizes)
    activation: Activation = eqx.field(static=True, default="relu", converter=activation)
    padding: str = eqx.field(static=True, default="same")
    outputs: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        check_sizes("`channels` of ConvNet", self.channels, least=1)
        require_count("`kernel` of ConvNet", self.kernel)
        check_sizes("`hidden` of ConvNet", self.hidden)
        check_padding("ConvNet", self.padding)
        check_outputs("ConvNet", self.outputs)

    def init(self, key: PRNGKey, x: Float[Array, "point height width channel"]) -> Tree:
        """Weights of variance 1 / inputs, shifts of zero."""
        require_axes("ConvNet", x, ("point", "height", "width", "channel"))
        num_outputs = known_outputs("ConvNet", self.outputs)
        key_convolutions, key_dense = jax.random.split(key)
        sizes = (x.shape[-1], *self.channels)
        keys = jax.random.split(key_convolutions, len(self.channels))
        convolutions = {
            f"conv{i}": init_convolution(keys[i], (self.kernel,) * 2, sizes[i], sizes[i + 1], x.dtype)
            for i in range(len(self.channels))
        }
        num_features = jax.eval_shape(self._features, convolutions, x).shape[-1]
        return convolutions | init_readout(key_dense, num_features, self.hidden, num_outputs, x.dtype)

    def apply(self, params: Tree, x: Float[Array, "point height width channel"]) -> Float[Array, "point output"]:
        return apply_readout(params, self._features(params, x), self.activation, num_hidden=len(self.hidden))

    def bind(self, num_outputs: int) -> "ConvNet":
        return dataclasses.replace(self, outputs=settle_outputs("ConvNet", self.outputs, num_outputs))

    def _features(self, params: Tree, x: Float[Array, "point height width channel"]) -> Float[Array, "point feature"]:
        h = x
        for i in range(len(self.channels)):
            h = self.activation(apply_convolution(params[f"conv{i}"], h, padding=self.padding))
            h = h if self.pool is None else self.pool.apply(h)
        return h.reshape((h.shape[0], -1))
