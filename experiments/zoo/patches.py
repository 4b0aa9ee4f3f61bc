"""Convolutions as products of patches with matrices.

    z[p, s, o] = b[o] + Σ_c patch[p, s, c] K[c, o],      c runs over the places and channels under the kernel

The numbers of `networks.ConvNet`, in a form that stays fast where many networks of different weights are trained at
once: a vectorised convolution becomes a grouped one, which is slow, a vectorised matrix product stays one.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core import Tree
from weightscape.core.checks import require
from weightscape.networks import ConvNet
from weightscape.networks.channels import along_channels
from weightscape.networks.dense import apply_readout


def apply_by_patches(
    network: ConvNet, params: Tree, x: Float[Array, "point height width channel"]
) -> Float[Array, "point output"]:
    """`network.apply(params, x)`, for odd kernels and padding "same"."""
    fits = network.padding == "same" and network.kernel % 2 == 1
    require(fits, "Patches need an odd kernel and padding 'same'", (network.kernel, network.padding), "Use `apply`.")
    h = x
    for i in range(len(network.channels)):
        layer = params[f"conv{i}"]
        z = _patches(h, network.kernel) @ layer["kernel"].reshape(-1, layer["kernel"].shape[-1])
        h = network.activation(z + along_channels(layer["bias"], z))
        h = h if network.pool is None else network.pool.apply(h)
    return apply_readout(params, h.reshape(len(h), -1), network.activation, num_hidden=len(network.hidden))


def _patches(h: Float[Array, "point height width channel"], kernel: int) -> Float[Array, "point height width patch"]:
    _, height, width, _ = h.shape
    edge = (kernel // 2, kernel // 2)
    padded = jnp.pad(h, ((0, 0), edge, edge, (0, 0)))
    shifted = [padded[:, i : i + height, j : j + width] for i in range(kernel) for j in range(kernel)]
    return jnp.concatenate(shifted, axis=-1)
