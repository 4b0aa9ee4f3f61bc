"""Newton's step by Kronecker factors of the curvature, at the cost of a gradient and of two solves a layer.

    δ_W = (A + ε α I)⁻¹ (∇_W log p) (G + ε γ I)⁻¹,      A = E[a aᵀ],   G = Σ_r E[g_r g_rᵀ],   α, γ their mean diagonals

for each linear layer, a its inputs with a last one of 1 for the bias, and g_r the gradients at its outputs by the
factors of the likelihood's Fisher information (`Likelihood.information_root`). A ⊗ G stands for the curvature of the
mean log likelihood of a row: exact for a linear model with the same noise everywhere, where ε → 0 is Newton's step. A
unit's inputs and outputs move with it, so under permutations and signs δ moves as the weights do. Weights in no linear
layer have no step.

A of a first layer is one for all networks that look at the same data, and is made once for all.
Reference: Martens and Grosse (2015), Optimizing neural networks with Kronecker-factored approximate curvature.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.types import Tree
from weightscape.flow.newton import conjugate_gradients, few_rows, prior_gradient
from weightscape.flow.target import Target
from weightscape.inference.layer_matrix import matrix_places
from weightscape.networks import LinearLayer, LinearLayers, find_linear_layers
from weightscape.priors import is_own_coordinate

_DAMPING = 1.0
"""ε. Drafts are far from where the curvature is that of the end, and smaller ones lead too far."""

_NUM_PRODUCTS = 12
"""With damped factors in the conjugate gradients of a solve. Their condition is at most their size over ε, plus one.
Decompositions are not for here: on two cores those of many networks wait for each other for ever (jax 0.10.1)."""


class Factors(NamedTuple):
    """A and G of a layer."""

    inputs: Float[Array, "row row"]
    outputs: Float[Array, "output output"]


def kronecker_step(
    target: Target, z: Float[Array, " weight"], gradient: Float[Array, " weight"]
) -> Float[Array, " weight"]:
    """δ at z, in a source that scales each weight by a number of its own.

    - `target`: whose rows say the curvature; as many as `newton.few_rows` takes.
    - `gradient`: that of the likelihood at z, for one row on average; the prior's is added here.
    """
    layout = target.source.layout
    scale = layout.flatten(target.source.position(jnp.ones_like(z)))
    slope, step = (gradient + prior_gradient(target, z)) / scale, jnp.zeros_like(z)
    for layer, factors in _factors(target, z):
        places = matrix_places(layer, layout)
        half = _solved(factors.inputs, slope[places])
        step = step.at[places].set(_solved(factors.outputs, half.T).T)
    return step / scale


def _factors(target: Target, z: Float[Array, " weight"]) -> list[tuple[LinearLayer, Factors]]:
    """Of all linear layers whose weights are coordinates of their own."""
    posterior = target.posterior
    x, _ = few_rows(posterior)
    parameters = posterior.constrain(target.source.position(z))
    found = find_linear_layers(posterior.model.network, parameters.network, x)
    is_own = lambda layer: all(is_own_coordinate(posterior.model.prior, path) for path in layer.leaves)
    chosen = tuple(layer for layer in found.layers if is_own(layer))
    run = lambda taps: _tapped(found, parameters.network, x, taps)
    zeros = {each.weight: jnp.zeros((len(x), each.num_positions, each.num_outputs), z.dtype) for each in chosen}
    outputs, pull, inputs = jax.vjp(run, zeros, has_aux=True)
    root = posterior.model.likelihood.information_root(outputs, parameters.likelihood)[:, : outputs.shape[1]]
    gradients = jax.vmap(lambda factor: pull(factor)[0], 2)(root)
    return [(each, _of_layer(each, inputs[each.weight], gradients[each.weight])) for each in chosen]


def _tapped(found: LinearLayers, params: Tree, x: Array, taps: dict[str, Array]) -> tuple[Array, dict[str, Array]]:
    """The network's outputs with something added to those of each layer, and the layers' inputs; by their weights."""
    inputs = {}

    def handler(call):
        if call.layer.weight not in taps:
            return call.outputs()
        inputs[call.layer.weight] = call.inputs()
        return call.outputs() + taps[call.layer.weight]

    return found.apply(params, x, handler), inputs


def _of_layer(
    layer: LinearLayer,
    inputs: Float[Array, "point position input"],
    gradients: Float[Array, "factor point position output"],
) -> Factors:
    if layer.bias is not None:
        inputs = jnp.concatenate([inputs, jnp.ones((*inputs.shape[:2], 1), inputs.dtype)], axis=2)
    num_points, num_positions = inputs.shape[:2]
    return Factors(
        jnp.einsum("psi,psj->ij", inputs, inputs) / (num_points * num_positions),
        jnp.einsum("rpsi,rpsj->ij", gradients, gradients) / num_points,
    )


def _solved(factor: Float[Array, "row row"], wanted: Float[Array, "row column"]) -> Float[Array, "row column"]:
    """(F + ε f I)⁻¹ of some columns, f the mean diagonal of F; one that is zero divides nothing."""
    size = jnp.maximum(jnp.trace(factor) / len(factor), jnp.finfo(factor.dtype).tiny ** 0.5)
    damped = factor / size + _DAMPING * jnp.eye(len(factor), dtype=factor.dtype)
    product = lambda columns: (damped @ columns.reshape(wanted.shape)).ravel()
    return conjugate_gradients(product, wanted.ravel(), _NUM_PRODUCTS).reshape(wanted.shape) / size
