"""A section of the loss: its values on the plane through three networks.

    w(u, v) = a + u e_1 + v e_2,      e_1 ∝ b − a,      e_2 ∝ (c − a) − ⟨c − a, e_1⟩ e_1

e_1 and e_2 are orthonormal, so distances in the picture are distances in weight space.

Reference: Garipov, Izmailov, Podoprikhin, Vetrov & Wilson (2018), Loss surfaces, mode connectivity, and fast ensembling
of DNNs.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float

from weightscape.core import tree
from weightscape.core.checks import require, require_count
from weightscape.core.types import Scalar, Tree

_LEAST_ANGLE = 1e-3


class Plane(eqx.Module):
    """The plane through three networks; made by `Plane.through`.

    - `origin`, `first`, `second`: a, e_1 and e_2.
    - `corners`: the coordinates (u, v) of a, b and c.
    """

    origin: Tree
    first: Tree
    second: Tree
    corners: Float[Array, "3 2"]

    @staticmethod
    def through(a: Tree, b: Tree, c: Tree) -> "Plane":
        """The plane, with a at its origin and b on its first axis."""
        to_b, to_c = tree.subtract(b, a), tree.subtract(c, a)
        base = tree.norm(to_b)
        first = tree.scale(1 / base, to_b)
        shift = tree.dot(to_c, first)
        across = tree.subtract(to_c, tree.scale(shift, first))
        height = tree.norm(across)
        _require_triangle(base, height, tree.norm(to_c))
        corners = jnp.stack([jnp.zeros(2), jnp.stack([base, jnp.zeros(())]), jnp.stack([shift, height])])
        return Plane(a, first, tree.scale(1 / height, across), corners)

    def at(self, u: Scalar, v: Scalar) -> Tree:
        """The network w(u, v)."""
        return jax.tree.map(lambda a, e, f: (a + u * e + v * f).astype(a.dtype), self.origin, self.first, self.second)


class Section(NamedTuple):
    """Losses on a grid: row j, column i is w(`u[i]`, `v[j]`). `corners` are the three networks' coordinates."""

    u: Float[Array, " column"]
    v: Float[Array, " row"]
    losses: Float[Array, "row column"]
    corners: Float[Array, "3 2"]


def section(loss: Callable[[Tree], Scalar], plane: Plane, *, num_points: int = 25, margin: float = 0.25) -> Section:
    """The loss on a grid that covers the three networks.

    - `num_points`: along each side; one network is evaluated at a time.
    - `margin`: how far the grid goes beyond them, as a fraction of their span.
    """
    require_count("`num_points` of section", num_points, least=2)
    low, high = jnp.min(plane.corners, axis=0), jnp.max(plane.corners, axis=0)
    reach = margin * (high - low)
    u, v = (jnp.linspace(low[i] - reach[i], high[i] + reach[i], num_points) for i in range(2))
    return Section(u, v, _losses(loss, plane, u, v), plane.corners)


@eqx.filter_jit
def _losses(
    loss: Callable[[Tree], Scalar], plane: Plane, u: Float[Array, " column"], v: Float[Array, " row"]
) -> Float[Array, "row column"]:
    return jax.lax.map(lambda y: jax.lax.map(lambda x: loss(plane.at(x, y)), u), v)


def _require_triangle(base: Scalar, height: Scalar, side: Scalar) -> None:
    if not isinstance(base, Tracer):
        spans = bool((base > 0) & (height > _LEAST_ANGLE * side) & (side > 0))
        came = f"a base of {float(base):.3g} and a height of {float(height):.3g}"
        require(spans, "Three networks must span a plane", came, "Pass three that do not lie on one line.")
