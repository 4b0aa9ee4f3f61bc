"""Where the weights of a linear layer lie in the flat vector of a position."""

import numpy as np
from jaxtyping import Int

from weightscape.core.layout import Layout
from weightscape.networks import LinearLayer, canonical_bias_indices, canonical_indices

_NETWORK = "network"


def network_path(path: str) -> str:
    """The path in a position of a leaf of the network; a network may be a single leaf, whose own path is empty."""
    return f"{_NETWORK}/{path}" if path else _NETWORK


def matrix_places(layer: LinearLayer, layout: Layout) -> Int[np.ndarray, "row output"]:
    """Where each entry of the layer's matrix W lies, the bias as its last row."""
    start = lambda path: layout.places(network_path(path)).start
    weight = start(layer.weight) + canonical_indices(layer)
    if layer.bias is None:
        return weight
    return np.vstack([weight, start(layer.bias) + canonical_bias_indices(layer)])
