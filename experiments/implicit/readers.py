"""Classifiers of networks by their weights: metanets of several symmetries, and plain networks of the flat weights."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from experiments.implicit.settings import Settings
from experiments.implicit.siren import network, pixels, start
from jaxtyping import Array, Float

from weightscape import geometry, metanet, symmetry
from weightscape.core import PRNGKey, Tree
from weightscape.core.layout import Layout
from weightscape.symmetry import Symmetry

Reader = Any
"""Weights to scores of the classes: an equinox module that is called, for which there is no type."""

NUM_CLASSES = 10
_NUM_PIXELS = 784
_NUM_PROBES = 32


class Recipe(NamedTuple):
    """How a reader is made from a key, and the symmetry whose random elements move the networks it is trained on."""

    make: Callable[[PRNGKey], Reader]
    moved_by: Symmetry | None = None


class Flat(eqx.Module):
    """A perceptron of standardised flat weights, as they are or in the canonical form of `symmetry`."""

    layers: eqx.nn.MLP
    shift: Float[Array, " weight"]
    scale: Float[Array, " weight"]
    symmetry: Symmetry | None

    @staticmethod
    def of(key: PRNGKey, networks: Tree, hidden: tuple[int, ...], found: Symmetry | None) -> "Flat":
        """One of equal hidden layers, standardised by the means and deviations of `networks`."""
        rows = jax.vmap(lambda params: _flattened(params, found))(networks)
        layers = eqx.nn.MLP(rows.shape[1], NUM_CLASSES, hidden[0], len(hidden), key=key)
        return Flat(layers, jnp.mean(rows, axis=0), jnp.std(rows, axis=0) + 1e-6, found)

    def __call__(self, params: Tree) -> Float[Array, " output"]:
        """Scores of the classes."""
        shift, scale = jax.lax.stop_gradient((self.shift, self.scale))
        return self.layers((_flattened(params, self.symmetry) - shift) / scale)


def readers(networks: Tree, settings: Settings) -> dict[str, Recipe]:
    """What is compared. `networks` are some to standardise by."""
    reading, like = settings.reading, start(jax.random.key(0), settings.fitting)
    net = network(settings.fitting)
    places = pixels(_NUM_PIXELS)
    found = symmetry.discover(net, like, places[:16])
    probes = metanet.Probes(net, places, _NUM_PROBES)

    def ours(group: Symmetry, probes: metanet.Probes | None = None) -> Recipe:
        options = {"num_outputs": NUM_CLASSES, "sizes": reading.sizes, "probes": probes}
        scaling = lambda: metanet.ChannelScaling.of(group, networks)
        return Recipe(lambda key: metanet.Reader(key, group, like, scaling=scaling(), **options))

    def flat(hidden: tuple[int, ...], group: Symmetry | None = None) -> Recipe:
        return Recipe(lambda key: Flat.of(key, networks, hidden, group))

    return {
        "metanet, permutations and signs": ours(found),
        "metanet, permutations": ours(found.without_signs()),
        f"metanet, permutations and signs, {_NUM_PROBES} probes": ours(found, probes),
        "flat": flat(reading.flat_hidden),
        "flat, wide": flat(reading.wide_hidden),
        "flat, trained on random equivalent networks": flat(reading.flat_hidden)._replace(moved_by=found),
        "flat, canonical form": flat(reading.flat_hidden, found),
        "flat, wide, canonical form": flat(reading.wide_hidden, found),
    }


def _flattened(params: Tree, found: Symmetry | None) -> Float[Array, " weight"]:
    placed = params if found is None else geometry.canonical(found, params).params
    return Layout.of(placed).flatten(placed)
