"""The multilayer perceptron.

    h_0 = x,    h_l = φ(h_{l-1} W_l + b_l),    outputs = h_{L-1} W_L + b_L

`W_l` has shape (inputs, units). Parameters are a dict of layers: `{"layer0": {"weight": …, "bias": …}, …}`.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.checks import InputError, require, require_count
from weightscape.core.config import registered
from weightscape.core.types import PRNGKey, Tree
from weightscape.networks.activations import Activation, activation
from weightscape.networks.network import Network


def _widths(hidden: int | tuple[int, ...]) -> tuple[int, ...]:
    return (hidden,) if isinstance(hidden, (int, np.integer)) else tuple(hidden)


@registered("networks.MLP")
class MLP(Network):
    """A fully connected network of any depth.

    - `hidden`: units of each hidden layer; `()` is a linear model.
    - `activation`: φ, a function or a name such as "tanh" or "relu".
    - `bias`: whether layers have the shifts b_l.
    - `outputs`: the output size; None leaves it open until `Model.condition` reads it off the targets.

    Example:
    >>> import jax
    >>> network = MLP(hidden=(16,), activation="tanh", outputs=3)
    >>> params = network.init(jax.random.key(0), jax.numpy.ones((5, 4)))
    >>> network.apply(params, jax.numpy.ones((5, 4))).shape
    (5, 3)
    """

    hidden: tuple[int, ...] = eqx.field(static=True, default=(16,), converter=_widths)
    activation: Activation = eqx.field(static=True, default="tanh", converter=activation)
    bias: bool = eqx.field(static=True, default=True)
    outputs: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        for width in self.hidden:
            require_count("Each entry of `hidden` of MLP", width)
        if self.outputs is not None:
            require_count("`outputs` of MLP", self.outputs)

    def init(self, key: PRNGKey, x: Float[Array, "point feature"]) -> Tree:
        """Weights of variance 1 / inputs (LeCun), shifts of zero."""
        if self.outputs is None:
            raise InputError(
                "`outputs` of MLP must be known before `init`, got None. Pass MLP(outputs=...) or let "
                "`Model.condition` bind it from the targets."
            )
        sizes = (x.shape[-1], *self.hidden, self.outputs)
        keys = jax.random.split(key, len(sizes) - 1)
        return {f"layer{i}": self._init_layer(keys[i], sizes[i], sizes[i + 1], x.dtype) for i in range(len(sizes) - 1)}

    def apply(self, params: Tree, x: Float[Array, "point feature"]) -> Float[Array, "point output"]:
        h = x
        for i in range(len(self.hidden) + 1):
            layer = params[f"layer{i}"]
            h = h @ layer["weight"]
            if self.bias:
                h = h + layer["bias"][None, :]
            if i < len(self.hidden):
                h = self.activation(h)
        return h

    def bind(self, num_outputs: int) -> "MLP":
        if self.outputs is None:
            return dataclasses.replace(self, outputs=num_outputs)
        require(
            self.outputs == num_outputs,
            f"`outputs` of MLP must match the targets' {num_outputs}",
            self.outputs,
            "Leave `outputs` open or correct it.",
        )
        return self

    def _init_layer(self, key: PRNGKey, num_inputs: int, num_units: int, dtype: jnp.dtype) -> Tree:
        weight = jax.random.normal(key, (num_inputs, num_units), dtype) / np.sqrt(num_inputs).astype(dtype)
        return {"weight": weight, "bias": jnp.zeros((num_units,), dtype)} if self.bias else {"weight": weight}
