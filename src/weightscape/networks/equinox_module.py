"""An Equinox module as a network: its floating-point arrays are the parameters, the rest is structure.

    apply(params, x)[p] = module with its arrays replaced by params, called on the single point x[p]

The policy for layers that are more than a function of weights and input: dropout is switched off (inference mode),
since noise in the function is no part of the posterior's density. Layers with state, such as batch normalisation, are
refused: their outputs depend on other points, and the posterior must be a function of the weights alone.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core import tree
from weightscape.core.checks import InputError, require, require_type, shape_of
from weightscape.core.types import PRNGKey, Tree
from weightscape.networks.network import Network

Maker = Callable[[PRNGKey], eqx.Module]


class EquinoxNetwork(Network):
    """A module without state, taken apart. Made by `from_equinox`.

    - `arrays`: the module with its arrays alone.
    - `skeleton`: the module without them.
    - `make`: builds a module with fresh weights from a key, where one was given.

    Parameters are a dict by path, such as `{"layers/0/weight": …}`.
    """

    arrays: Tree
    skeleton: eqx.Module = eqx.field(static=True)
    make: Maker | None = eqx.field(static=True, default=None)

    def init(self, key: PRNGKey, x: Float[Array, "point ..."]) -> Tree:
        """A fresh module's weights where there is a `make`, else the module's own, whatever the key."""
        return _parameters(self.arrays if self.make is None else _take_apart(self.make(key))[0])

    def apply(self, params: Tree, x: Float[Array, "point ..."]) -> Float[Array, "point output"]:
        module: Any = eqx.combine(_replace(self.arrays, params), self.skeleton)
        outputs = jax.vmap(module)(x)
        remedy = "Let the module return a vector of outputs for a single point."
        require(outputs.ndim == 2, "An Equinox module must give (point, output)", shape_of(outputs), remedy)
        return outputs

    def bind(self, num_outputs: int) -> "EquinoxNetwork":
        return self


def from_equinox(module: eqx.Module, *, make: Maker | None = None) -> EquinoxNetwork:
    """The network of an Equinox module that maps one point to a vector of outputs.

    - `module`: dropout in it is switched off; layers with state are refused.
    - `make`: builds the same module with fresh weights from a key. Without it every `init` gives the weights of
      `module`, so all chains start in one place.

    Example:
    >>> make = lambda key: eqx.nn.MLP(4, 3, width_size=8, depth=1, key=key)
    >>> network = from_equinox(make(jax.random.key(0)), make=make)
    >>> network.apply(network.init(jax.random.key(1), jnp.ones((5, 4))), jnp.ones((5, 4))).shape
    (5, 3)
    """
    right = isinstance(module, eqx.Module) and callable(module)
    remedy = "Pass the module itself; `Function` wraps any pair of functions."
    require_type(right, "`from_equinox` takes a callable equinox.Module", type(module).__name__, remedy)
    return EquinoxNetwork(*_take_apart(module), make)


def _take_apart(module: eqx.Module) -> tuple[Tree, Tree]:
    """Arrays and skeleton of the module as it is used: in inference mode."""
    _refuse_state(module)
    return eqx.partition(eqx.nn.inference_mode(module), _is_array)


def _refuse_state(module: eqx.Module) -> None:
    stateful = lambda node: isinstance(node, (eqx.nn.BatchNorm, eqx.nn.StateIndex))
    found = sorted({type(node).__name__ for node in jax.tree.leaves(module, is_leaf=stateful) if stateful(node)})
    if found:
        raise InputError(
            "An imported module must be a function of its weights and one point, for so the posterior is a function of "
            f"the weights alone, got layers with state: {', '.join(found)}. Use layer normalisation, or filter "
            "response normalisation as in `networks.ResNet`."
        )


def _is_array(leaf: object) -> bool:
    return isinstance(leaf, (jax.Array, np.ndarray))


def _parameters(arrays: Tree) -> Tree:
    return {
        path: jnp.asarray(leaf)
        for path, leaf in tree.named_leaves(arrays).items()
        if jnp.issubdtype(leaf.dtype, jnp.floating)
    }


def _replace(arrays: Tree, params: Tree) -> Tree:
    """`arrays` with the parameters in their places; arrays of integers stay as they are."""
    leaves = [params.get(path, leaf) for path, leaf in tree.named_leaves(arrays).items()]
    return jax.tree.unflatten(jax.tree.structure(arrays), leaves)
