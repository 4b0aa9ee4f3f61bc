"""How large a network is: the numbers that its parameters hold, and the arrays that it makes on its way."""

from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float

from weightscape.core import tree
from weightscape.core.types import Tree
from weightscape.networks.network import Network


def parameter_count(network: Network, x: Float[Array, "point ..."]) -> int:
    """The number of parameters for inputs like `x`; nothing is computed, only shapes are.

    Example:
    >>> from weightscape.networks import MLP
    >>> parameter_count(MLP(hidden=(16,), outputs=3), jax.numpy.ones((1, 4)))
    131
    """
    return tree.size(eqx.filter_eval_shape(network.init, jax.random.key(0), x))


def widest_bytes(network: Network, params: Tree, x: Any) -> int:
    """The memory of the largest array that `apply` makes on its way, from shapes alone.

    - `params`, `x`: arrays, or their shapes as `jax.ShapeDtypeStruct`.
    """
    program = jax.make_jaxpr(network.apply)(params, x).jaxpr
    steps = ([variable.aval for variable in step.outvars] for step in program.eqns)
    return max((tree.num_bytes(made) for made in steps), default=1)
