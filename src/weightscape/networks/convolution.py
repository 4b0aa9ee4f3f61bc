"""The convolution layer over images, series or volumes: one kernel slid over all spatial places.

    z[p, s, o] = b[o] + Σ_{k, i} h[p, stride·s + k − pad, i] K[k, i, o]

(a cross-correlation, as everywhere in deep learning), with p the point, s and k spatial places, i and o channels. The
kernel has shape (*spatial, in, out). Padding "same" surrounds with zeros to ceil(size / stride) places, the odd
zero last; "valid" keeps only places where the kernel fits.
"""

import string
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.checks import require, require_known, shape_of
from weightscape.core.types import PRNGKey, Tree
from weightscape.networks.channels import along_channels
from weightscape.networks.initial import scaled_normal

PADDINGS: Mapping[str, str] = {"same": "SAME", "valid": "VALID"}


def init_convolution(
    key: PRNGKey, kernel: tuple[int, ...], num_inputs: int, num_channels: int, dtype: np.dtype, *, gain: float = 1.0
) -> Tree:
    """A kernel of variance gain / (places · inputs), shifts of zero."""
    shape = (*kernel, num_inputs, num_channels)
    weights = scaled_normal(key, shape, int(np.prod(shape[:-1])), dtype, gain=gain)
    return {"kernel": weights, "bias": jnp.zeros((num_channels,), dtype)}


def apply_convolution(
    params: Tree, h: Float[Array, "point ... input"], *, padding: str, stride: int = 1
) -> Float[Array, "point ... channel"]:
    """z, the correlation with the kernel plus the shift of each channel."""
    z = correlate(h, params["kernel"], padding=padding, stride=stride)
    return z + along_channels(params["bias"], z)


def correlate(
    h: Float[Array, "point ... input"], kernel: Float[Array, "... input channel"], *, padding: str, stride: int = 1
) -> Float[Array, "point ... channel"]:
    """Σ_{k, i} h[p, stride·s + k − pad, i] K[k, i, o] at each place s."""
    num_spatial = h.ndim - 2
    fits = padding == "same" or all(size >= k for size, k in zip(h.shape[1:-1], kernel.shape, strict=False))
    came = f"places {shape_of(h)[1:-1]} under a kernel of {shape_of(kernel)[:num_spatial]}"
    require(fits, "A kernel must fit into its input", came, 'Use fewer layers, a smaller kernel or padding="same".')
    dtype = jnp.result_type(h, kernel)  # unlike a matrix product, this operation promotes nothing by itself
    return jax.lax.conv_general_dilated(
        h.astype(dtype), kernel.astype(dtype), (stride,) * num_spatial, PADDINGS[padding],
        dimension_numbers=_axes(num_spatial),
    )  # fmt: skip


def check_padding(network: str, padding: str) -> None:
    """Raise unless `padding` is "same" or "valid"."""
    require_known(f"`padding` of {network}", padding, PADDINGS)


def require_axes(network: str, x: Array, axes: tuple[str, ...]) -> None:
    """Raise unless `x` has the named axes."""
    remedy = "Reshape it; a black-and-white image or a plain series has one channel or feature."
    require(x.ndim == len(axes), f"`x` of {network} must have axes ({', '.join(axes)})", f"shape {shape_of(x)}", remedy)


def _axes(num_spatial: int) -> tuple[str, str, str]:
    places = string.digits[:num_spatial]
    return f"N{places}C", f"{places}IO", f"N{places}C"
