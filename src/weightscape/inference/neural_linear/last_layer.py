"""The last layer of a network as a linear model: its features, its prior and where its weights lie.

    f(x) = φ(x) W,       φ(x) the inputs of the last layer, with a last entry of 1 where it has a bias

Everything is in double precision on the host, whatever the network's own type: the problem is small.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from weightscape.core import Tree, tree
from weightscape.core.checks import InputError, require
from weightscape.core.layout import Layout
from weightscape.inference.layer_matrix import matrix_places
from weightscape.networks import (
    LinearLayer,
    LinearLayers,
    canonical_bias,
    canonical_weight,
    find_linear_layers,
    widest_bytes,
)
from weightscape.posterior import Parameters, Posterior
from weightscape.priors import FanInNormal, Normal, Prior, prior_at

_BATCH_BYTES = 256 * 2**20

Matrix = Float[np.ndarray, "feature output"]


class LastLayer(NamedTuple):
    """A linear model over fixed features.

    - `features`: φ(x_i) of every point.
    - `weights`: W as it was given, the bias in the last row.
    - `prior_scales`: the standard deviation of each entry of W under the prior.
    - `places`: where each entry lies in the flat vector of a position.
    """

    features: Float[np.ndarray, "point feature"]
    weights: Matrix
    prior_scales: Matrix
    places: Int[np.ndarray, "feature output"]

    @staticmethod
    def of(posterior: Posterior, parameters: Parameters, layout: Layout) -> "LastLayer":
        """The last layer of the posterior's network at given parameters; `layout` is that of its positions."""
        layers, layer = find_last_layer(posterior)
        features = _features(layers, parameters.network, posterior.x)
        if layer.bias is not None:
            features = np.column_stack([features, np.ones(len(features))])
        precisions = _prior_precisions(posterior.model.prior, parameters, layer.leaves)
        scales = 1 / np.sqrt(_matrix(layer, precisions))
        return LastLayer(features, _matrix(layer, parameters.network), scales, matrix_places(layer, layout))


def find_last_layer(posterior: Posterior) -> tuple[LinearLayers, LinearLayer]:
    """The layers of the posterior's network and the last of them; raises where it is not a linear model."""
    network, x = posterior.model.network, posterior.x[:1]
    layers = find_linear_layers(network, posterior.model.parameters_like(x).network, x)
    layer = _last(layers)
    for leaf in layer.leaves:
        _require_normal(posterior.model.prior, leaf)
    return layers, layer


def _last(layers: LinearLayers) -> LinearLayer:
    layer = layers.last
    if layer is None:
        raise InputError(
            "The network of NeuralLinear must end in a linear layer, got outputs that are not one layer's. "
            "Let the last operation be a product with a weight of its own, and a bias at most."
        )
    once = layer.num_positions == 1
    remedy = "Pool before the last layer."
    require(once, "The last layer of NeuralLinear must act once on each point", f"{layer.num_positions} times", remedy)
    return layer


def _require_normal(prior: Prior, leaf: str) -> None:
    """Raise unless the weights of a leaf are independent and normal under the prior."""
    own = prior_at(prior, leaf)
    asked = f"The prior of the last layer must be Normal, FanInNormal or ByPath of them for {leaf}"
    remedy = "Give the last layer such a prior, or use Laplace."
    require(isinstance(own, (Normal, FanInNormal)), asked, type(own).__name__, remedy)


def _prior_precisions(prior: Prior, parameters: Parameters, leaves: tuple[str, ...]) -> Tree:
    """Λ of the leaves of the last layer: −∂/∂θ log p(θ) = Λ θ, looked at where θ = 1."""
    named = tree.named_leaves(parameters.network)
    at = [jnp.ones_like(leaf) if path in leaves else leaf for path, leaf in named.items()]
    params = jax.tree.unflatten(jax.tree.structure(parameters.network), at)
    slope = jax.grad(lambda params: prior.log_density(params, parameters.prior))(params)
    return jax.tree.map(jnp.negative, slope)


def _features(layers: LinearLayers, params: Tree, x: Float[Array, "point ..."]) -> Float[np.ndarray, "point input"]:
    """φ of all points, a batch at a time."""
    one = jax.ShapeDtypeStruct((1, *x.shape[1:]), x.dtype)
    fitting = max(1, _BATCH_BYTES // (4 * widest_bytes(layers.network, params, one)))
    size = min(len(x), fitting)
    parts = []
    for start in range(0, len(x), size):
        rows = np.minimum(np.arange(start, start + size), len(x) - 1)  # padded, to compile once
        parts.append(np.asarray(_batch_features(layers, params, x[rows]), np.float64)[: len(x) - start])
    return np.concatenate(parts)


@eqx.filter_jit
def _batch_features(layers: LinearLayers, params: Tree, x: Float[Array, "point ..."]) -> Float[Array, "point input"]:
    seen = {}

    def handler(call):
        seen[call.layer.weight] = call
        return call.outputs()

    layers.apply(params, x, handler)
    return seen[_last(layers).weight].inputs()[:, 0]


def _matrix(layer: LinearLayer, params: Tree) -> Matrix:
    """W of a tree like the network's parameters, with the bias in the last row."""
    named = tree.named_leaves(params)
    weight = np.asarray(canonical_weight(layer, named[layer.weight]), np.float64)
    if layer.bias is None:
        return weight
    return np.vstack([weight, np.asarray(canonical_bias(layer, named[layer.bias]), np.float64)])
