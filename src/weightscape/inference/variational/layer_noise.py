"""Weights in linear layers, whose noise can be moved from the weights to the layer's outputs.

Found by tracing the network. A layer is covered where its weights are the position itself (a prior may instead put a
scale in between, as a hierarchical one does); other weights are drawn once for all points.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, Tree, tree
from weightscape.core.checks import require
from weightscape.core.layout import Layout
from weightscape.inference.variational.guide import Vector
from weightscape.networks import (
    Handler,
    LayerCall,
    LinearLayer,
    LinearLayers,
    Network,
    canonical_bias,
    canonical_weight,
    find_linear_layers,
)
from weightscape.posterior import Posterior
from weightscape.priors import is_own_coordinate


class Covered(NamedTuple):
    """The linear layers of a network; paths of the weights whose noise is moved, and of the others with the reason."""

    layers: LinearLayers
    paths: tuple[str, ...]
    others: dict[str, str]

    def has(self, layer: LinearLayer) -> bool:
        """Whether the layer's noise is moved."""
        return layer.weight in self.paths

    def facts(self, name: str) -> dict[str, Any]:
        """What is covered, for the record of a run."""
        return {"noise": {"estimator": name, "moved": list(self.paths), "drawn": self.others}}


def covered_layers(posterior: Posterior, layout: Layout, refused: Callable[[LinearLayer], str]) -> Covered:
    """The layers of a posterior's network, without those for which `refused` gives a reason."""
    like = jax.eval_shape(layout.unflatten, jax.ShapeDtypeStruct((layout.size,), layout.dtype)).network
    x = jax.ShapeDtypeStruct(posterior.x.shape, posterior.x.dtype)
    layers = find_linear_layers(posterior.model.network, like, x)
    others, paths = dict(layers.others), []
    for layer in layers.layers:
        leaves = layer.leaves
        between = not all(is_own_coordinate(posterior.model.prior, path) for path in leaves)
        reason = "the prior puts a scale in between" if between else refused(layer)
        if reason:
            others |= dict.fromkeys(leaves, reason)
        else:
            paths.extend(leaves)
    return Covered(layers, tuple(paths), others)


def require_some(covered: Covered, estimator: str) -> None:
    """Raise where an estimator has nothing to do."""
    asked = f"A network for {estimator}() must have a linear layer that it can treat"
    came = "; ".join(f"{path}: {reason}" for path, reason in covered.others.items())
    require(bool(covered.paths), asked, f"none ({came})", "Use `Reparameterised()`.")


def pointwise_with(
    key: PRNGKey,
    rows: Posterior,
    covered: Covered,
    vector: Vector,
    layout: Layout,
    noisy: Callable[[PRNGKey, LayerCall], Array],
) -> Array:
    """log p(y_i | …) of each point, with `noisy(key, call)` for the outputs of each covered layer."""
    keys = iter(jax.random.split(key, len(covered.layers.layers)))

    def handler(call: LayerCall) -> Array:
        key_layer = next(keys)
        return noisy(key_layer, call) if covered.has(call.layer) else call.outputs()

    model = dataclasses.replace(rows.model, network=_Handled(covered.layers, handler))
    handled = dataclasses.replace(rows, model=model)
    return handled.pointwise_log_likelihood(handled.constrain(layout.unflatten(vector)))


class LayerNumbers(NamedTuple):
    """A number for each weight of a layer and each entry of its bias, in canonical form."""

    weight: Float[Array, "input output"]
    bias: Float[Array, " output"] | None


class WeightNumbers:
    """A flat vector, such as the variances of all weights, by layer."""

    def __init__(self, vector: Vector, layout: Layout):
        self._leaves = tree.named_leaves(layout.unflatten(vector).network)

    def of(self, call: LayerCall) -> LayerNumbers:
        layer = call.layer
        bias = None if layer.bias is None else canonical_bias(layer, self._leaves[layer.bias])
        return LayerNumbers(canonical_weight(layer, self._leaves[layer.weight]), bias)


class _Handled(Network):
    """A network whose layers compute what the handler says; it lives within one evaluation."""

    layers: LinearLayers
    handler: Handler

    def init(self, key: PRNGKey, x: Float[Array, "point ..."]) -> Tree:
        return self.layers.network.init(key, x)

    def apply(self, params: Tree, x: Float[Array, "point ..."]) -> Float[Array, "point output"]:
        return self.layers.apply(params, x, self.handler)

    def bind(self, num_outputs: int) -> Network:
        return self
