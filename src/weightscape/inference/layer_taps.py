"""Inputs and output gradients of linear layers, by which curvature is known without gradients of single points.

    ∂f/∂W[i, o] = Σ_s a[s, i] g[s, o]        a: the layer's inputs,  g: the gradient at its outputs,  s: positions

The gradient at a layer's outputs is that of a tap: a zero that is added there.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.types import Tree
from weightscape.networks import LinearLayer, LinearLayers

Factors = Callable[[Float[Array, "point output"]], Float[Array, "point output factor"]]


class Tap(NamedTuple):
    """Of one layer: inputs, a last one of 1 where the layer has a bias; and gradients for each factor of a point."""

    inputs: Float[Array, "point position input"]
    gradients: Float[Array, "factor point position output"]


def taps_of(
    layers: LinearLayers, chosen: tuple[LinearLayer, ...], params: Tree, x: Float[Array, "point ..."], factors: Factors
) -> dict[str, Tap]:
    """The taps of some layers, by the path of the layer's weight.

    - `layers`: all layers of a network.  `chosen`: those that are tapped.
    - `factors`: from the network's outputs what is pulled back to the layers.
    """
    named, dtype = {layer.weight: layer for layer in chosen}, jnp.result_type(*jax.tree.leaves(params))
    zeros = {path: jnp.zeros((len(x), one.num_positions, one.num_outputs), dtype) for path, one in named.items()}

    def run(zeros):
        inputs = {}

        def handler(call):
            path = call.layer.weight
            if path not in named:
                return call.outputs()
            inputs[path] = call.inputs()
            return call.outputs() + zeros[path]

        return layers.apply(params, x, handler), inputs

    outputs, pull, inputs = jax.vjp(run, zeros, has_aux=True)
    gradients = jax.vmap(lambda factor: pull(factor)[0], 2)(factors(outputs))
    return {path: Tap(_homogeneous(layer, inputs[path]), gradients[path]) for path, layer in named.items()}


def _homogeneous(
    layer: LinearLayer, inputs: Float[Array, "point position input"]
) -> Float[Array, "point position row"]:
    if layer.bias is None:
        return inputs
    return jnp.concatenate([inputs, jnp.ones((*inputs.shape[:2], 1), inputs.dtype)], axis=2)
