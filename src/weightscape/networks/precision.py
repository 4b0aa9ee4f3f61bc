"""Precision: which type the products of dense layers read.

    z = ⌊h⌉ ⌊W⌉ + b,      ∂W = ⌊h⌉ᵀ ⌊∂z⌉,      ∂h = ⌊∂z⌉ ⌊W⌉ᵀ,      ∂b = Σ_n ∂z_n

⌊·⌉ rounds to that type. Parameters keep their own type, and all sums are taken in float32. A network that rounds is a
function of its own: its posterior is the one of θ ↦ f(x; ⌊θ⌉), and a sampler targets that.

| name | products read | bits | largest number | hidden layers are kept in |
|---|---|---|---|---|
| "default" | what JAX chooses: float32 on CPU, TF32 on NVIDIA | 24, 11 | 3e38 | the parameters' type |
| "float32" | float32 on every device | 24 | 3e38 | the parameters' type |
| "float16" | float16 | 11 | 65,504 | float16 |
| "bfloat16" | bfloat16 | 8 | 3e38 | bfloat16 |

Matrix units read the last two at twice the rate of TF32, and half the bytes are moved. float16 rounds as finely as
TF32, but units beyond its largest number are infinite. `benchmarks/hmc_gpu.py` measures the speed, and the energy error
that rounding brings.
"""

import abc
import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.checks import require_known, require_type
from weightscape.core.config import registered
from weightscape.core.types import Tree
from weightscape.networks.dense import apply_dense

# hᵀ ∂z has few results and a long sum over points. It keeps an accelerator busy when the points are cut into parts, as
# many as give each multiprocessor (132 of an H200) one block of results. XLA cuts such a sum too, but first copies both
# factors to pad them, unless the parts are there already, equal and aligned.
_MULTIPROCESSORS = 132
_BLOCK_ROWS, _BLOCK_COLUMNS = 128, 256
_ALIGNED_POINTS = 8


class Precision(eqx.Module):
    """How dense layers multiply."""

    @abc.abstractmethod
    def dense(self, params: Tree, h: Float[Array, "point input"]) -> Float[Array, "point unit"]:
        """z = h W + b in the parameters' type."""

    @abc.abstractmethod
    def hidden(self, params: Tree, h: Float[Array, "point input"]) -> Float[Array, "point unit"]:
        """z = h W + b in the type that hidden layers are kept in."""

    @abc.abstractmethod
    def inputs(self, x: Float[Array, "point input"]) -> Float[Array, "point input"]:
        """The inputs as the first product reads them: a set that is used many times is rounded once."""


@registered("networks.DefaultPrecision")
class DefaultPrecision(Precision):
    """JAX's own choice for the device."""

    def dense(self, params: Tree, h: Float[Array, "point input"]) -> Float[Array, "point unit"]:
        return apply_dense(params, h)

    def hidden(self, params: Tree, h: Float[Array, "point input"]) -> Float[Array, "point unit"]:
        return apply_dense(params, h)

    def inputs(self, x: Float[Array, "point input"]) -> Float[Array, "point input"]:
        return x


@registered("networks.Float32")
class Float32(Precision):
    """Nothing is rounded, on any device."""

    def dense(self, params: Tree, h: Float[Array, "point input"]) -> Float[Array, "point unit"]:
        with jax.default_matmul_precision("highest"):
            return apply_dense(params, h)

    def hidden(self, params: Tree, h: Float[Array, "point input"]) -> Float[Array, "point unit"]:
        return self.dense(params, h)

    def inputs(self, x: Float[Array, "point input"]) -> Float[Array, "point input"]:
        return x


@registered("networks.Half")
class Half(Precision):
    """Factors are rounded to a type of 16 bits, and hidden layers are kept in it.

    - `kind`: "float16" or "bfloat16".

    Derivatives are taken backwards only: `jax.grad` and `jax.vjp`, not `jax.jvp`.
    """

    kind: str = eqx.field(static=True)

    def __check_init__(self):
        require_known("`kind` of Half", self.kind, _HALVES)

    def dense(self, params: Tree, h: Float[Array, "point input"]) -> Float[Array, "point unit"]:
        return _layer(params, self.inputs(h), jnp.float32).astype(params["weight"].dtype)

    def hidden(self, params: Tree, h: Float[Array, "point input"]) -> Float[Array, "point unit"]:
        return _layer(params, self.inputs(h), self.kind)

    def inputs(self, x: Float[Array, "point input"]) -> Float[Array, "point input"]:
        return x.astype(self.kind)


_HALVES = ("float16", "bfloat16")

PRECISIONS: dict[str, Precision] = {
    "default": DefaultPrecision(),
    "float32": Float32(),
    **{kind: Half(kind) for kind in _HALVES},
}


def precision(choice: str | Precision) -> Precision:
    """The precision of that name, or the precision itself."""
    if isinstance(choice, str):
        require_known("`precision`", choice, PRECISIONS)
        return PRECISIONS[choice]
    remedy = f"Pass one of: {', '.join(PRECISIONS)}."
    require_type(isinstance(choice, Precision), "`precision` must be a name or a Precision", repr(choice), remedy)
    return choice


def _layer(params: Tree, h: Float[Array, "point input"], result: str | type) -> Float[Array, "point unit"]:
    whole = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), params)
    return _dense(jnp.dtype(result), h, whole["weight"], whole.get("bias"))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _dense(result: np.dtype, h: Array, weight: Array, bias: Array | None) -> Array:
    """z of the type `result`, with the derivatives at the top of this file; `h` is rounded already."""
    z = _product("pi,iu->pu", h, weight.astype(h.dtype), result)
    return z if bias is None else z + bias.astype(result)[None, :]


def _forward(result: np.dtype, h: Array, weight: Array, bias: Array | None) -> tuple[Array, tuple]:
    return _dense(result, h, weight, bias), (h, weight.astype(h.dtype), bias)


def _backward(result: np.dtype, kept: tuple, slope: Float[Array, "point unit"]) -> tuple[Array, Array, Array | None]:
    h, weight, bias = kept
    rounded = slope.astype(h.dtype)
    shift = None if bias is None else jnp.sum(slope.astype(jnp.float32), axis=0)
    return _product("pu,iu->pi", rounded, weight, h.dtype), _over_points(h, rounded), shift


_dense.defvjp(_forward, _backward)


def _product(axes: str, left: Array, right: Array, result: np.dtype) -> Array:
    """The sum of products over the axis that `axes` drops: taken in float32, given in the type `result`."""
    native = lambda left, right: jnp.einsum(axes, left, right, preferred_element_type=result)
    return jax.lax.platform_dependent(left, right, cpu=functools.partial(_widened, axes, result), default=native)


def _widened(axes: str, result: np.dtype, left: Array, right: Array) -> Array:
    """The same numbers in float32: CPUs multiply no batches of 16 bits."""
    wide = left.astype(jnp.float32), right.astype(jnp.float32)
    return jnp.einsum(axes, *wide, precision="highest").astype(result)


def _over_points(h: Float[Array, "point input"], slope: Float[Array, "point unit"]) -> Float[Array, "input unit"]:
    """hᵀ slope, summed over points in equal parts."""
    num_parts = count_parts(len(h), h.shape[1], slope.shape[1])
    cut = lambda x: x.reshape(num_parts, -1, x.shape[1])
    return jnp.sum(_product("spi,spu->siu", cut(h), cut(slope), jnp.dtype(jnp.float32)), axis=0)


def count_parts(num_points: int, num_rows: int, num_columns: int) -> int:
    """Into how many equal parts the points of a product with num_rows × num_columns results are cut.

    The largest number that leaves each part aligned and makes no more blocks of results than there are multiprocessors.
    """
    num_blocks = math.ceil(num_rows / _BLOCK_ROWS) * math.ceil(num_columns / _BLOCK_COLUMNS)
    most = min(_MULTIPROCESSORS // num_blocks, num_points // _ALIGNED_POINTS)
    fits = lambda count: num_points % (count * _ALIGNED_POINTS) == 0
    return max((count for count in range(1, most + 1) if fits(count)), default=1)
