"""How many numbers a network's parameters hold."""

import equinox as eqx
import jax
from jaxtyping import Array, Float

from weightscape.core import tree
from weightscape.networks.network import Network


def parameter_count(network: Network, x: Float[Array, "point ..."]) -> int:
    """The number of parameters for inputs like `x`; nothing is computed, only shapes are.

    Example:
    >>> from weightscape.networks import MLP
    >>> parameter_count(MLP(hidden=(16,), outputs=3), jax.numpy.ones((1, 4)))
    131
    """
    return tree.size(eqx.filter_eval_shape(network.init, jax.random.key(0), x))
