"""Which linear layers of a posterior's network are tapped (`layer_taps`), and their taps at its curvature."""

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from weightscape.inference.laplace.curvature import RowCurvature
from weightscape.inference.laplace.neighbourhood import Neighbourhood, joined
from weightscape.inference.layer_matrix import network_path
from weightscape.inference.layer_taps import Tap, taps_of
from weightscape.networks import LinearLayer, LinearLayers, find_linear_layers
from weightscape.priors import is_own_coordinate


class Tapped(eqx.Module):
    """Layers whose weights all move and are their own coordinates.

    - `layers`: all layers of the network.  `chosen`: those that are tapped, by the path of their weight.
    """

    layers: LinearLayers
    chosen: tuple[LinearLayer, ...] = eqx.field(static=True)

    def taps(self, curvature: RowCurvature, around: Neighbourhood, x: Array, y: Array) -> dict[str, Tap]:
        """The taps of a chunk of points, by the path of the layer's weight."""
        parameters = around.parameters()

        def factors(outputs: Float[Array, "point output"]) -> Float[Array, "point output factor"]:
            return curvature.factors(around, joined(outputs, parameters.likelihood), y)[:, : outputs.shape[1]]

        return taps_of(self.layers, self.chosen, parameters.network, x, factors)


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
