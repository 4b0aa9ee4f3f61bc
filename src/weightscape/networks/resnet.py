"""A residual network without batch statistics, as used in the large HMC study.

    layer(h) = N(K ∗ h + b)
    block(h) = φ(s(h) + layer(φ(layer(h)))),    s(h) = h, or layer(h) with 1 × 1 kernels where the shape changes
    outputs  = (mean over places of the last block) W + b,    first of all h = φ(layer(x))

Kernels are 3 × 3 with padding "same". There is one stack of blocks for each entry of `blocks`; every stack but the
first halves height and width (stride 2 in the first layer and in the shortcut of its first block) and doubles the
channels. N is filter response normalisation with its learned threshold τ, and φ is swish: φ is applied after
max(·, τ), for so the published code has it. With blocks (3, 3, 3) there are 20 layers with weights along the trunk.

On CIFAR-10 (32 × 32 × 3, 10 classes) the default has 274,042 parameters, layer by layer those of that code:
270,256 in kernels, 4 × 784 in b, γ, β, τ, and 650 in the last dense layer.

References: He et al. (2016), Deep Residual Learning, section 4.2; Izmailov et al. (2021), What Are Bayesian Neural
Network Posteriors Really Like?, appendix A, and its code, google-research/bnn_hmc, `resnet20_frn_swish`. We differ in
two points: all places are averaged, where the code averages windows of 8 × 8 (the same for images of 32 × 32), and
initial weights are normal with variance 2 / inputs, not truncated normal of that variance.
"""

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.checks import require_count
from weightscape.core.config import registered
from weightscape.core.types import PRNGKey, Tree
from weightscape.networks.activations import Activation, activation
from weightscape.networks.convolution import apply_convolution, init_convolution, require_axes
from weightscape.networks.dense import apply_dense
from weightscape.networks.filter_response import FilterResponseNorm
from weightscape.networks.initial import scaled_normal
from weightscape.networks.network import Network
from weightscape.networks.normalisation import Normalisation
from weightscape.networks.sizes import as_sizes, check_outputs, check_sizes, known_outputs, settle_outputs


@registered("networks.ResNet")
class ResNet(Network):
    """Residual blocks of two 3 × 3 convolutions; ResNet-20 by default.

    - `blocks`: blocks of each stack; (n, n, n) is a ResNet of depth 6 n + 2.
    - `width`: channels of the first stack.
    - `activation`: φ, a function or a name; "silu" is swish.
    - `normalisation`: N, which must not cross points.
    - `outputs`: the output size; None leaves it open.

    Parameters: `{"stem": {"conv": {"kernel", "bias"}, "norm": {"scale", "shift", "threshold"}}, "stack0_block0":
    {"first": {"conv", "norm"}, "second": …, "shortcut": …}, …, "output": {"weight", "bias"}}`, with a shortcut only
    where the shape changes.

    Example:
    >>> network = ResNet(blocks=(1, 1), width=4, outputs=10)
    >>> images = jnp.ones((2, 8, 8, 3))
    >>> network.apply(network.init(jax.random.key(0), images), images).shape
    (2, 10)
    """

    blocks: tuple[int, ...] = eqx.field(static=True, default=(3, 3, 3), converter=as_sizes)
    width: int = eqx.field(static=True, default=16)
    activation: Activation = eqx.field(static=True, default="silu", converter=activation)
    normalisation: Normalisation = FilterResponseNorm()
    outputs: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        check_sizes("`blocks` of ResNet", self.blocks, least=1)
        require_count("`width` of ResNet", self.width)
        check_outputs("ResNet", self.outputs)

    def init(self, key: PRNGKey, x: Float[Array, "point height width channel"]) -> Tree:
        """Weights of variance 2 / inputs (He), shifts and thresholds of zero, scales of one."""
        require_axes("ResNet", x, ("point", "height", "width", "channel"))
        num_outputs = known_outputs("ResNet", self.outputs)
        key_stem, key_blocks, key_output = jax.random.split(key, 3)
        params = {"stem": self._init_layer(key_stem, 3, x.shape[-1], self.width, x.dtype)}
        for i, block in enumerate(self._blocks()):
            params[block.name] = self._init_block(jax.random.fold_in(key_blocks, i), block, x.dtype)
        num_features = self.width * 2 ** (len(self.blocks) - 1)
        weight = scaled_normal(key_output, (num_features, num_outputs), num_features, x.dtype, gain=2.0)
        return params | {"output": {"weight": weight, "bias": jnp.zeros((num_outputs,), x.dtype)}}

    def apply(self, params: Tree, x: Float[Array, "point height width channel"]) -> Float[Array, "point output"]:
        return self.layers(params, x)["output"]

    def layers(self, params: Tree, x: Float[Array, "point height width channel"]) -> dict[str, Array]:
        """What the stem, each block and the output give, by name."""
        h = self.activation(self._apply_layer(params["stem"], x))
        made = {"stem": h}
        for block in self._blocks():
            h = self._apply_block(params[block.name], h, block)
            made[block.name] = h
        return made | {"output": apply_dense(params["output"], jnp.mean(h, axis=(1, 2)))}

    def bind(self, num_outputs: int) -> "ResNet":
        return dataclasses.replace(self, outputs=settle_outputs("ResNet", self.outputs, num_outputs))

    def _blocks(self) -> Iterator["_Block"]:
        for stack, num_blocks in enumerate(self.blocks):
            num_channels = self.width * 2**stack
            for i in range(num_blocks):
                changes = stack > 0 and i == 0
                num_inputs = num_channels // 2 if changes else num_channels
                yield _Block(f"stack{stack}_block{i}", num_inputs, num_channels, 2 if changes else 1)

    def _init_block(self, key: PRNGKey, block: "_Block", dtype: np.dtype) -> Tree:
        key_first, key_second, key_shortcut = jax.random.split(key, 3)
        made = {
            "first": self._init_layer(key_first, 3, block.num_inputs, block.num_channels, dtype),
            "second": self._init_layer(key_second, 3, block.num_channels, block.num_channels, dtype),
        }
        if block.stride > 1:
            made["shortcut"] = self._init_layer(key_shortcut, 1, block.num_inputs, block.num_channels, dtype)
        return made

    def _init_layer(self, key: PRNGKey, kernel: int, num_inputs: int, num_channels: int, dtype: np.dtype) -> Tree:
        convolution = init_convolution(key, (kernel, kernel), num_inputs, num_channels, dtype, gain=2.0)
        return {"conv": convolution, "norm": self.normalisation.init(num_channels, dtype)}

    def _apply_block(self, params: Tree, h: Array, block: "_Block") -> Array:
        inner = self.activation(self._apply_layer(params["first"], h, stride=block.stride))
        change = self._apply_layer(params["second"], inner)
        kept = self._apply_layer(params["shortcut"], h, stride=block.stride) if block.stride > 1 else h
        return self.activation(kept + change)

    def _apply_layer(self, params: Tree, h: Array, *, stride: int = 1) -> Array:
        z = apply_convolution(params["conv"], h, padding="same", stride=stride)
        return self.normalisation.apply(params["norm"], z)


class _Block(NamedTuple):
    """A block's name, its channels before and after, and its stride."""

    name: str
    num_inputs: int
    num_channels: int
    stride: int
