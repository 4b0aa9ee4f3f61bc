"""Newton's step by Kronecker factors of the curvature, at the cost of a gradient and of two solves a layer.

    δ_W = (A + ε α I)⁻¹ (∇_W log p) (G + ε γ I)⁻¹,      A = E[a aᵀ],   G = Σ_r E[g_r g_rᵀ],   α, γ their mean diagonals

for each linear layer, a its inputs with a last one of 1 for the bias, and g_r the gradients at its outputs by the
factors of the likelihood's Fisher information (`Likelihood.information_root`). A ⊗ G stands for the curvature of the
mean log likelihood of a row: exact for a linear model with the same noise everywhere, where ε → 0 is Newton's step. A
unit's inputs and outputs move with it, so under permutations and signs δ moves as the weights do. Weights in no linear
layer have no step, and none is made in a layer whose A or G is zero, as G is where all its ReLUs are off: the data say
nothing of where its weights should be.

A of a first layer is one for all networks that look at the same data, and is made once for all.
Reference: Martens and Grosse (2015), Optimizing neural networks with Kronecker-factored approximate curvature.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.flow.newton import conjugate_gradients, few_rows, prior_gradient
from weightscape.flow.target import Target
from weightscape.inference.layer_matrix import matrix_places
from weightscape.inference.layer_taps import Tap, taps_of
from weightscape.networks import LinearLayer, find_linear_layers
from weightscape.priors import is_own_coordinate

_DAMPING = 1.0
"""ε. Drafts are far from where the curvature is that of the end, and smaller ones lead too far."""

_NUM_PRODUCTS = 12
"""With damped factors in the conjugate gradients of a solve. Their condition is at most their size over ε, plus one.
Decompositions are not for here: on two cores those of many networks wait for each other for ever (jax 0.10.1)."""


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
    for layer, tap in _taps(target, z):
        places, (num_points, num_positions) = matrix_places(layer, layout), tap.inputs.shape[:2]
        inputs = jnp.einsum("psi,psj->ij", tap.inputs, tap.inputs) / (num_points * num_positions)
        outputs = jnp.einsum("rpsi,rpsj->ij", tap.gradients, tap.gradients) / num_points
        step = step.at[places].set(_solved(outputs, _solved(inputs, slope[places]).T).T)
    return step / scale


def _taps(target: Target, z: Float[Array, " weight"]) -> list[tuple[LinearLayer, Tap]]:
    """Of all linear layers whose weights are coordinates of their own."""
    model, (x, _) = target.posterior.model, few_rows(target.posterior)
    parameters = target.posterior.constrain(target.source.position(z))
    found = find_linear_layers(model.network, parameters.network, x)
    chosen = tuple(each for each in found.layers if all(is_own_coordinate(model.prior, path) for path in each.leaves))

    def factors(outputs: Float[Array, "point output"]) -> Float[Array, "point output factor"]:
        return model.likelihood.information_root(outputs, parameters.likelihood)[:, : outputs.shape[1]]

    taps = taps_of(found, chosen, parameters.network, x, factors)
    return [(layer, taps[layer.weight]) for layer in chosen]


def _solved(factor: Float[Array, "row row"], wanted: Float[Array, "row column"]) -> Float[Array, "row column"]:
    """(F + ε f I)⁻¹ of some columns, f the mean diagonal of F; zero where F is zero."""
    mean = jnp.trace(factor) / len(factor)
    # What is divided by less has squares that overflow, and σ is their mean. The inner choice is for derivatives.
    is_there = mean > jnp.finfo(factor.dtype).tiny ** 0.5
    size = jnp.where(is_there, mean, 1)
    damped = factor / size + _DAMPING * jnp.eye(len(factor), dtype=factor.dtype)
    product = lambda columns: (damped @ columns.reshape(wanted.shape)).ravel()
    solved = conjugate_gradients(product, wanted.ravel(), _NUM_PRODUCTS).reshape(wanted.shape) / size
    return jnp.where(is_there, solved, 0)
