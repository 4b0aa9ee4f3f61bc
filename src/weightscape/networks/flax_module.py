"""A Flax (linen) module as a network: its "params" collection is the parameters.

    init(key, x) = module.init(key, x)["params"],    apply(params, x) = module.apply({"params": params}, x)

Flax itself is not imported: any object with these two methods will do. The policy for layers that are more than a
function of weights and input: collections other than "params", such as the running means of batch normalisation, are
refused, since the posterior must be a function of the weights alone; and so is dropout that is on.
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float

from weightscape.core.checks import InputError, require, require_type
from weightscape.core.types import PRNGKey, Tree
from weightscape.networks.network import Network


class FlaxNetwork(Network):
    """A linen module without state. Made by `from_flax`.

    - `held`: the module.
    - `arguments`: further arguments of its call, by name.
    """

    held: "Held" = eqx.field(static=True)
    arguments: tuple[tuple[str, Any], ...] = eqx.field(static=True, default=())

    def init(self, key: PRNGKey, x: Float[Array, "point ..."]) -> Tree:
        variables = self.held.module.init(key, x, **dict(self.arguments))
        extra = sorted(set(variables) - {"params"})
        require(
            not extra,
            "An imported module must keep all its variables in the collection 'params', for so the posterior is a "
            "function of the weights alone",
            f"also {', '.join(extra)}",
            "In place of batch statistics use layer normalisation, or filter response normalisation as in "
            "`networks.ResNet`.",
        )
        params = variables.get("params", {})
        self._refuse_noise(params, x)
        return params

    def apply(self, params: Tree, x: Float[Array, "point ..."]) -> Float[Array, "point output"]:
        return self.held.module.apply({"params": params}, x, **dict(self.arguments))

    def bind(self, num_outputs: int) -> "FlaxNetwork":
        return self

    def _refuse_noise(self, params: Tree, x: Array) -> None:
        try:
            jax.eval_shape(self.apply, params, x)
        except Exception as error:
            if type(error).__name__ != "InvalidRngError":  # flax's own class, not imported here
                raise
            raise InputError(
                "An imported module must be a function of its weights and input, got one that asks for random numbers "
                "(dropout that is on). Switch it off: `Dropout(..., deterministic=True)`, or pass the argument that "
                'does, such as `from_flax(module, arguments={"train": False})`.'
            ) from error


class Held:
    """A module known by its identity: linen modules may hold lists, and then they have no hash for the compiler."""

    def __init__(self, module: Any):
        self.module = module


def from_flax(module: Any, *, arguments: Mapping[str, Any] | None = None) -> FlaxNetwork:
    """The network of a linen module that maps (point, …) to (point, output).

    - `module`: it must have no state and draw no random numbers.
    - `arguments`: further arguments of its call, by name, such as `{"train": False}`.

    A module of Flax's nnx holds its weights and is refused; split it and wrap the two functions with `Function`.
    """
    methods = all(callable(getattr(module, name, None)) for name in ("init", "apply"))
    remedy = "Pass a flax.linen module; wrap others, an nnx module among them, with `Function(init, apply)`."
    require_type(methods, "`from_flax` takes a module with `init` and `apply`", type(module).__name__, remedy)
    return FlaxNetwork(Held(module), tuple((arguments or {}).items()))
