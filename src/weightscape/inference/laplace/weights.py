"""Which weights an approximation is over; the others stay where they are."""

import abc
import fnmatch

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Int

from weightscape.core import InputError, registered
from weightscape.core.checks import require, require_type
from weightscape.inference.laplace.neighbourhood import Neighbourhood
from weightscape.inference.layer_matrix import network_path
from weightscape.networks import find_linear_layers

_NETWORK = "network/"


class Weights(eqx.Module):
    """A choice of coordinates."""

    @abc.abstractmethod
    def places(self, around: Neighbourhood) -> Int[np.ndarray, " free"] | None:
        """Where they lie in the flat vector; None for all."""


@registered("inference.AllWeights")
class AllWeights(Weights):
    """Everything that is inferred: weights, noise scales, latent scales of the prior."""

    def places(self, around: Neighbourhood) -> Int[np.ndarray, " free"] | None:
        return None


@registered("inference.LastLayer")
class LastLayer(Weights):
    """Weights and bias of the layer whose outputs are the network's, found by tracing."""

    def places(self, around: Neighbourhood) -> Int[np.ndarray, " free"] | None:
        network, params_like = around.posterior.model.network, jax.eval_shape(around.parameters).network
        last = find_linear_layers(network, params_like, around.posterior.x[:1]).last
        if last is None:
            raise InputError("A network must end in a linear layer for LastLayer, got another end. Choose by path.")
        return _places(around, set(last.leaves))


@registered("inference.ByPaths")
class ByPaths(Weights):
    """Leaves of the network whose path matches one of `patterns`, such as `layer1/*`."""

    patterns: tuple[str, ...] = eqx.field(static=True)

    def places(self, around: Neighbourhood) -> Int[np.ndarray, " free"] | None:
        known = [path.removeprefix(_NETWORK) for path in around.layout.paths if path.startswith(_NETWORK)]
        idle = [pattern for pattern in self.patterns if not fnmatch.filter(known, pattern)]
        require(not idle, "Every pattern of ByPaths must match a leaf", ", ".join(idle), f"Leaves: {', '.join(known)}.")
        return _places(around, {path for pattern in self.patterns for path in fnmatch.filter(known, pattern)})


NAMED = {"all": AllWeights, "last_layer": LastLayer}


def as_weights(value: Weights | str) -> Weights:
    """The choice of that name, a pattern of paths, or the object itself."""
    if isinstance(value, str):
        return NAMED[value]() if value in NAMED else ByPaths((value,))
    remedy = 'Pass "all", "last_layer", a pattern such as "layer1/*", or an object.'
    require_type(isinstance(value, Weights), "`weights` of Laplace must say which", type(value).__name__, remedy)
    return value


def _places(around: Neighbourhood, paths: set[str]) -> Int[np.ndarray, " free"]:
    inside = [around.layout.places(network_path(path)) for path in sorted(paths)]
    return np.concatenate([np.arange(where.start, where.stop) for where in inside])
