"""Activation functions by name."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array

from weightscape.core.checks import require_known, require_type
from weightscape.core.config import register

Activation = Callable[[Array], Array]


def identity(x: Array) -> Array:
    """x itself."""
    return x


ACTIVATIONS: dict[str, Activation] = {
    "celu": jax.nn.celu,
    "elu": jax.nn.elu,
    "erf": jax.lax.erf,
    "gelu": jax.nn.gelu,
    "identity": identity,
    "leaky_relu": jax.nn.leaky_relu,
    "relu": jax.nn.relu,
    "relu6": jax.nn.relu6,
    "selu": jax.nn.selu,
    "sigmoid": jax.nn.sigmoid,
    "silu": jax.nn.silu,
    "sin": jnp.sin,
    "softplus": jax.nn.softplus,
    "tanh": jnp.tanh,
}

for _name, _function in ACTIVATIONS.items():
    register(f"activations.{_name}", _function)

ACTIVATIONS["swish"] = jax.nn.silu  # one function, two names; it is stored under the first


def activation(choice: str | Activation) -> Activation:
    """The function of that name, or the function itself."""
    if isinstance(choice, str):
        require_known("`activation`", choice, ACTIVATIONS)
        return ACTIVATIONS[choice]
    remedy = f"Pass a function or one of: {', '.join(ACTIVATIONS)}."
    require_type(callable(choice), "`activation` must be a name or a function", repr(choice), remedy)
    return choice
