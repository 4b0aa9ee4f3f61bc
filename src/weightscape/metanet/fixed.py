"""Numbers of a module that no training changes: neither gradients nor weight decay reach them."""

from typing import Any

import equinox as eqx
import jax


class Fixed(eqx.Module):
    """A tree of arrays that is not trained; `value` has no gradient."""

    tree: Any

    @property
    def value(self) -> Any:
        """The tree."""
        return jax.lax.stop_gradient(self.tree)


def split_trained(module: Any) -> tuple[Any, Any]:
    """The floating-point arrays that are trained, and the rest; `eqx.combine` joins them again."""
    return eqx.partition(module, eqx.is_inexact_array, is_leaf=lambda node: isinstance(node, Fixed))
