"""The diagonal of the curvature, layer by layer.

    H_{(i, o), (i, o)} = Σ_{p, r} (Σ_s a[p, s, i] g[r, p, s, o])²  =  Σ_p a[p, i]² Σ_r g[r, p, o]²   for one position

So a dense layer costs two products of its size and never holds the gradient of a single point. Weights outside of
linear layers have their rows made.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.inference.laplace.curvature import RowCurvature
from weightscape.inference.laplace.neighbourhood import Neighbourhood
from weightscape.inference.laplace.products import diagonal, over_points
from weightscape.inference.laplace.taps import Tapped, layer_input_bytes, tapped_layers
from weightscape.inference.layer_matrix import matrix_places
from weightscape.inference.layer_taps import Tap


def layered_diagonal(curvature: RowCurvature, around: Neighbourhood) -> Float[Array, " free"]:
    """H_jj of the weights that move."""
    tapped, _ = tapped_layers(around)
    made, is_made = jnp.zeros((around.num_free,), around.location.dtype), np.zeros(around.num_free, bool)
    for path, entries in (_diagonals(curvature, around, tapped) if tapped.chosen else {}).items():
        layer = next(layer for layer in tapped.chosen if layer.weight == path)
        where = around.numbers()[matrix_places(layer, around.layout)].ravel()
        made, is_made[where] = made.at[where].set(entries.ravel()), True
    rest = np.flatnonzero(~is_made)
    if len(rest):
        made = made.at[rest].set(diagonal(curvature, around.within(rest)))
    return made


@eqx.filter_jit
def _diagonals(curvature: RowCurvature, around: Neighbourhood, tapped: Tapped) -> dict[str, Float[Array, "row output"]]:
    def of_chunk(x, y, is_there):
        taps = tapped.taps(curvature, around, x, y)
        return {path: _squares(tap, is_there) for path, tap in taps.items()}

    like = jax.eval_shape(around.coordinates, around.centre(), around.posterior.x[:1])
    shared = [
        layer.num_inputs * layer.num_outputs * like.shape[1] for layer in tapped.chosen if layer.num_positions > 1
    ]
    extra = 2 * around.location.dtype.itemsize * sum(shared)
    summed = over_points(of_chunk, around, layer_input_bytes(tapped, around, like.shape[1]) + extra)
    power = around.posterior.likelihood_power.astype(around.location.dtype)
    return jax.tree.map(lambda entries: power * entries, summed)


def _squares(tap: Tap, is_there: Float[Array, " point"]) -> Float[Array, "row output"]:
    if tap.inputs.shape[1] == 1:
        gradients = jnp.sum(tap.gradients[:, :, 0] ** 2, axis=0) * is_there[:, None]
        return (tap.inputs[:, 0] ** 2).T @ gradients
    rows = jnp.einsum("psi,rpso->rpio", tap.inputs, tap.gradients)
    return jnp.einsum("rpio,p->io", rows**2, is_there)
