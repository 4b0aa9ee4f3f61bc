"""Inputs and output gradients of every linear layer, by which curvature is known without gradients of single points.

    ∂f/∂W[i, o] = Σ_s a[s, i] g[s, o]        a: the layer's inputs,  g: the gradient at its outputs,  s: positions

The gradient at a layer's outputs is that of a tap: a zero that is added there.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.inference.laplace.curvature import RowCurvature
from weightscape.inference.laplace.neighbourhood import Neighbourhood, joined
from weightscape.inference.layer_matrix import network_path
from weightscape.networks import LinearLayer, LinearLayers, find_linear_layers
from weightscape.priors import is_own_coordinate


class Tap(NamedTuple):
    """Of one layer: inputs, a last one of 1 where the layer has a bias; and gradients for each factor of a point."""

    inputs: Float[Array, "point position input"]
    gradients: Float[Array, "factor point position output"]


class Tapped(eqx.Module):
    """Layers whose weights all move and are their own coordinates.

    - `layers`: all layers of the network.  `chosen`: those that are tapped, by the path of their weight.
    """

    layers: LinearLayers
    chosen: tuple[LinearLayer, ...] = eqx.field(static=True)

    def taps(self, curvature: RowCurvature, around: Neighbourhood, x: Array, y: Array) -> dict[str, Tap]:
        """The taps of a chunk of points, by the path of the layer's weight."""
        chosen = {layer.weight: layer for layer in self.chosen}
        params = around.parameters().network
        zeros = {
            path: jnp.zeros((len(x), layer.num_positions, layer.num_outputs), around.location.dtype)
            for path, layer in chosen.items()
        }

        def run(zeros):
            inputs = {}

            def handler(call):
                path = call.layer.weight
                if path not in chosen:
                    return call.outputs()
                inputs[path] = call.inputs()
                return call.outputs() + zeros[path]

            return self.layers.apply(params, x, handler), inputs

        outputs, pull, inputs = jax.vjp(run, zeros, has_aux=True)
        factors = curvature.factors(around, joined(outputs, around.parameters().likelihood), y)[:, : outputs.shape[1]]
        gradients = jax.vmap(lambda factor: pull(factor)[0], 2)(factors)
        return {path: Tap(_homogeneous(chosen[path], inputs[path]), gradients[path]) for path in chosen}


def tapped_layers(around: Neighbourhood) -> tuple[Tapped, dict[str, str]]:
    """The layers to tap, and why other leaves are in none of them."""
    network, params_like = around.posterior.model.network, jax.eval_shape(around.parameters).network
    found = find_linear_layers(network, params_like, around.posterior.x[:1])
    reasons, chosen = dict(found.others), []
    for layer in found.layers:
        leaves = layer.leaves
        if not all(is_own_coordinate(around.posterior.model.prior, path) for path in leaves):
            reasons |= dict.fromkeys(leaves, "a product with latent scales of the prior")
        elif all(_moves(around, path) for path in leaves):
            chosen.append(layer)
        elif any(_moves(around, path) for path in leaves):
            reasons |= dict.fromkeys(leaves, "only a part of its layer moves")
    moving = {path: reason for path, reason in reasons.items() if _moves(around, path)}
    return Tapped(found, tuple(chosen)), moving


def layer_input_bytes(tapped: Tapped, around: Neighbourhood, num_factors: int) -> int:
    """What the taps of one point take."""
    numbers = sum(
        layer.num_positions * (layer.num_inputs + 1 + (num_factors + 2) * layer.num_outputs) for layer in tapped.chosen
    )
    return around.location.dtype.itemsize * (2 * numbers + 1)


def _moves(around: Neighbourhood, path: str) -> bool:
    return bool(np.all(around.numbers()[around.layout.places(network_path(path))] >= 0))


def _homogeneous(
    layer: LinearLayer, inputs: Float[Array, "point position input"]
) -> Float[Array, "point position row"]:
    if layer.bias is None:
        return inputs
    return jnp.concatenate([inputs, jnp.ones((*inputs.shape[:2], 1), inputs.dtype)], axis=2)
