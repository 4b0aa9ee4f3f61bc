"""A network is a pure function over a tree of parameters.

    outputs = apply(params, x),        params ~ init(key, x)

The leading axis of `x` and of the outputs counts points; the last axis of the outputs is read by the likelihood.
"""

import abc
from collections.abc import Callable

import equinox as eqx
from jaxtyping import Array, Float

from weightscape.core.types import PRNGKey, Tree


class Network(eqx.Module):
    """A function of inputs whose parameters are passed in, never held."""

    @abc.abstractmethod
    def init(self, key: PRNGKey, x: Float[Array, "point ..."]) -> Tree:
        """Parameters to start from, with shapes read off `x`."""

    @abc.abstractmethod
    def apply(self, params: Tree, x: Float[Array, "point ..."]) -> Float[Array, "point output"]:
        """The outputs at each point."""

    @abc.abstractmethod
    def bind(self, num_outputs: int) -> "Network":
        """The same network with its output size settled, where it was left open."""


class Function(Network):
    """Any pair of functions as a network.

    Example:
    >>> import jax, jax.numpy as jnp
    >>> line = Function(lambda key, x: {"slope": jnp.zeros(())}, lambda params, x: params["slope"] * x)
    >>> line.apply({"slope": jnp.asarray(3.0)}, jnp.ones((2, 1))).shape
    (2, 1)
    """

    init_function: Callable[[PRNGKey, Array], Tree] = eqx.field(static=True)
    apply_function: Callable[[Tree, Array], Array] = eqx.field(static=True)

    def init(self, key: PRNGKey, x: Float[Array, "point ..."]) -> Tree:
        return self.init_function(key, x)

    def apply(self, params: Tree, x: Float[Array, "point ..."]) -> Float[Array, "point output"]:
        return self.apply_function(params, x)

    def bind(self, num_outputs: int) -> "Function":
        return self
