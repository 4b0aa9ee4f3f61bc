"""The values of a group's units at given inputs, in any network.

No network is asked for its inner values: the dense and convolution layers found in its program are watched while it
runs. A layer makes the units of a group where its weight belongs to the group along the layer's outputs.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.types import Tree
from weightscape.geometry.multipliers import Exponents, exponents_of
from weightscape.geometry.unit_products import Place, places
from weightscape.networks import LayerCall, LinearLayer, LinearLayers, canonical_indices
from weightscape.posterior import Parameters
from weightscape.symmetry import Symmetry


class UnitSource(NamedTuple):
    """A layer that makes the units of a group.

    - `weight`: the path of its weight in the network.
    - `columns`: which of its outputs belong to each unit, one row for each.
    - `exponents`: how the outputs change where units are rescaled or change sign.
    """

    weight: str
    columns: tuple[tuple[int, ...], ...]
    exponents: Exponents

    def values(self, outputs: dict[str, Array]) -> Float[Array, "unit value"]:
        """The values of each unit at all points and positions, from the outputs of all layers."""
        chosen = outputs[self.weight][:, :, np.asarray(self.columns)]
        return jnp.moveaxis(chosen, 2, 0).reshape(len(self.columns), -1)


def network_part(params: Tree) -> Tree:
    """The weights of the network, where there are other parameters too."""
    return params.network if isinstance(params, Parameters) else params


def layer_outputs(found: LinearLayers, params: Tree, x: Float[Array, "point ..."]) -> dict[str, Array]:
    """The outputs of every linear layer, (point, position, output), by the path of its weight."""
    seen: dict[str, Array] = {}

    def watch(call: LayerCall) -> Array:
        seen[call.layer.weight] = call.outputs()
        return seen[call.layer.weight]

    found.apply(params, x, watch)
    return seen


def unit_sources(symmetry: Symmetry, group: int, found: LinearLayers) -> tuple[UnitSource, ...]:
    """The layers that make the units of a group; there may be none, as for embeddings and attention heads."""
    whole = jax.tree.unflatten(symmetry.layout.structure, symmetry.layout.paths)
    prefix = "network/" if isinstance(whole, Parameters) else ""
    layers = {prefix + layer.weight: layer for layer in found.layers}
    sources = []
    for place in places(symmetry, group):
        layer = layers.get(place.member.path)
        columns = None if layer is None else _columns(layer, place)
        if layer is not None and columns is not None:
            sources.append(UnitSource(layer.weight, columns, exponents_of(place.member)))
    return tuple(sources)


def _columns(layer: LinearLayer, place: Place) -> tuple[tuple[int, ...], ...] | None:
    """The layer's outputs that belong to each unit; None where the units are not along the outputs alone.

    Outputs that also belong to another group are left out: it is not known which of them to compare.
    """
    entries = np.unravel_index(canonical_indices(layer), place.factors.sizes)
    along_inputs = [np.ptp(where, axis=0).any() for where in entries]
    mixed = [i for i, others in enumerate(place.factors.members) if others and i != place.member.factor]
    if along_inputs[place.member.factor] or any(np.ptp(entries[i], axis=1).any() for i in mixed):
        return None
    where = entries[place.member.factor][0]
    return tuple(tuple(np.flatnonzero(where == position).tolist()) for position in place.member.positions)
