"""The likelihood's curvature H at a neighbourhood: whole, its diagonal, or its product with a vector.

Points go in chunks, so that memory is bounded by a chunk's rows J_iᵀ f_ir, of k numbers each.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core import tree
from weightscape.inference.laplace.curvature import Curvature, RowCurvature
from weightscape.inference.laplace.neighbourhood import Neighbourhood
from weightscape.networks import widest_bytes

_CHUNK_BYTES = 128 * 2**20
_COLUMNS = 64


@eqx.filter_jit
def dense(curvature: Curvature, around: Neighbourhood) -> Float[Array, "free free"]:
    """H, of shape (k, k)."""
    if isinstance(curvature, RowCurvature):

        def of_chunk(x, y, is_there):
            rows = _rows(curvature, around, x, y) * is_there[:, None, None]
            flat = rows.reshape(-1, rows.shape[2])
            return flat.T @ flat

        return _power(around) * over_points(of_chunk, around, _row_bytes(around))
    return symmetric_matrix(lambda vector: times(curvature, around, vector), around)


@eqx.filter_jit
def diagonal(curvature: Curvature, around: Neighbourhood) -> Float[Array, " free"]:
    """H_jj."""
    if isinstance(curvature, RowCurvature):

        def of_chunk(x, y, is_there):
            return jnp.sum(_rows(curvature, around, x, y) ** 2 * is_there[:, None, None], axis=(0, 1))

        return _power(around) * over_points(of_chunk, around, _row_bytes(around))
    return each_unit(lambda unit: unit @ times(curvature, around, unit), around)


@eqx.filter_jit
def times(curvature: Curvature, around: Neighbourhood, vector: Float[Array, " free"]) -> Float[Array, " free"]:
    """H v, at the cost of a few gradients; nothing of size k × k is made."""

    def of_chunk(x, y, is_there):
        if not isinstance(curvature, RowCurvature):
            total = lambda v: -jnp.sum(around.log_likelihood(v, x, y) * is_there)
            return jax.jvp(jax.grad(total), (around.centre(),), (vector,))[1]
        outputs = lambda v: around.coordinates(v, x)
        coordinates, change = jax.jvp(outputs, (around.centre(),), (vector,))
        factors = curvature.factors(around, coordinates, y) * is_there[:, None, None]
        weighed = jnp.einsum("pcr,pdr,pd->pc", factors, factors, change)
        return jax.vjp(outputs, around.centre())[1](weighed)[0]

    return _power(around) * over_points(of_chunk, around, _outputs_bytes(around))


def symmetric_matrix(
    product: Callable[[Float[Array, " free"]], Float[Array, " free"]], around: Neighbourhood
) -> Float[Array, "free free"]:
    """The matrix behind a product with vectors, column by column."""
    columns = each_unit(product, around)
    return 0.5 * (columns + columns.T)  # rounding alone is not symmetric


def each_unit(function: Callable[[Float[Array, " free"]], Array], around: Neighbourhood) -> Float[Array, "free ..."]:
    """`function` of every unit vector over the weights that move, a few at a time."""
    unit = lambda i: jnp.zeros((around.num_free,), around.location.dtype).at[i].set(1)
    few = min(_COLUMNS, around.num_free)
    return jax.lax.map(lambda i: function(unit(i)), jnp.arange(around.num_free), batch_size=few)


def over_points(
    of_chunk: Callable[[Array, Array, Float[Array, " point"]], Any], around: Neighbourhood, point_bytes: int
) -> Any:
    """Σ over chunks of `of_chunk(x, y, is_there)`; `is_there` is zero at points that only fill the last chunk."""
    x, y = around.posterior.rows()
    size = max(1, min(len(x), _CHUNK_BYTES // point_bytes))
    num_chunks = -(-len(x) // size)
    places = jnp.arange(num_chunks * size).reshape(num_chunks, size)
    there = (places < len(x)).astype(around.location.dtype)
    places = jnp.minimum(places, len(x) - 1)

    def step(total, chunk):
        where, is_there = chunk
        return tree.add(total, of_chunk(x[where], y[where], is_there)), None

    like = jax.eval_shape(of_chunk, x[places[0]], y[places[0]], there[0])
    start = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like)
    return jax.lax.scan(step, start, (places, there))[0]


def _rows(curvature: RowCurvature, around: Neighbourhood, x: Array, y: Array) -> Float[Array, "point factor free"]:
    """J_iᵀ f_ir for all points of a chunk."""

    def one(point, target):
        outputs = lambda v: around.coordinates(v, point[None])[0]
        coordinates, pull = jax.vjp(outputs, around.centre())
        factors = curvature.factors(around, coordinates[None], target[None])[0]
        return jax.vmap(lambda factor: pull(factor)[0])(factors.T)

    return jax.vmap(one)(x, y)


def _row_bytes(around: Neighbourhood) -> int:
    like = jax.eval_shape(around.coordinates, around.centre(), around.posterior.x[:1])
    return 2 * like.shape[1] * around.num_free * around.location.dtype.itemsize


def _outputs_bytes(around: Neighbourhood) -> int:
    """What a point takes on its way through the network, a few times its largest array."""
    params = jax.eval_shape(around.parameters).network
    return 8 * widest_bytes(around.posterior.model.network, params, around.posterior.x[:1])


def _power(around: Neighbourhood) -> Array:
    return around.posterior.likelihood_power.astype(around.location.dtype)
