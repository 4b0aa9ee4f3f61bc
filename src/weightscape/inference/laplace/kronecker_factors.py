"""Kronecker factors of the curvature of every linear layer.

    H_layer ≈ A ⊗ G / (N S),     A = Σ_{i, s} a aᵀ,     G = Σ_{i, r, s} g gᵀ

over N points i, S positions s and factors r. Exact where inputs and gradients are independent over points and there is
one position: a linear model with the same noise everywhere.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from weightscape.inference.laplace.curvature import RowCurvature
from weightscape.inference.laplace.kronecker_information import KroneckerInformation
from weightscape.inference.laplace.neighbourhood import Neighbourhood
from weightscape.inference.laplace.products import over_points
from weightscape.inference.laplace.taps import Tapped, layer_input_bytes, tapped_layers
from weightscape.inference.layer_matrix import matrix_places


class KroneckerBlock(NamedTuple):
    """A layer's factors, and where the entries of its matrix lie among the weights that move."""

    name: str
    information: KroneckerInformation
    places: Int[np.ndarray, " part"]


def kronecker_blocks(
    curvature: RowCurvature, around: Neighbourhood, *, joint_bias: bool = True
) -> tuple[list[KroneckerBlock], dict[str, str]]:
    """The blocks of all linear layers that move, and why other leaves of the network have none.

    - `joint_bias`: whether the bias is a row of its layer's matrix, or a block of its own.
    """
    tapped, left_out = tapped_layers(around)
    if not tapped.chosen:
        return [], left_out
    factors = _factors(curvature, around, tapped)
    blocks = []
    for layer in tapped.chosen:
        inputs, outputs = factors[layer.weight]
        scale = around.posterior.likelihood_power / (around.posterior.num_points * layer.num_positions)
        outputs, places = scale.astype(outputs.dtype) * outputs, around.numbers()[matrix_places(layer, around.layout)]
        rows = [(layer.weight, slice(None))]
        if layer.bias is not None and not joint_bias:
            rows = [(layer.weight, slice(0, -1)), (layer.bias, slice(-1, None))]
        for name, part in rows:
            information = KroneckerInformation(inputs[part, part], outputs, name)
            blocks.append(KroneckerBlock(name, information, places[part].ravel()))
    return blocks, left_out


@eqx.filter_jit
def _factors(
    curvature: RowCurvature, around: Neighbourhood, tapped: Tapped
) -> dict[str, tuple[Float[Array, "row row"], Float[Array, "output output"]]]:
    """A and G of each layer."""

    def of_chunk(x, y, is_there):
        taps = tapped.taps(curvature, around, x, y)
        return {
            path: (
                jnp.einsum("psi,psj,p->ij", tap.inputs, tap.inputs, is_there),
                jnp.einsum("rpsi,rpsj,p->ij", tap.gradients, tap.gradients, is_there),
            )
            for path, tap in taps.items()
        }

    like = jax.eval_shape(around.coordinates, around.centre(), around.posterior.x[:1])
    return over_points(of_chunk, around, layer_input_bytes(tapped, around, like.shape[1]))
