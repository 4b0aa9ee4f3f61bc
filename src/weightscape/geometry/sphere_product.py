"""The manifold of normalised networks: a sphere for each unit that may be rescaled, and flat space for the rest.

    d(x, y)² = Σ_i θ(x_i, y_i)² + ‖x_rest − y_rest‖²      x_i the incoming weights of unit i, of norm one

Rescaling a unit changes nothing in its function, so only the direction of its incoming weights counts. exp, log and
parallel transport act on each factor alone. With shifts, x_i = (w_i, b_i), which stays bounded where w_i is next to
nothing and b_i / ‖w_i‖ is not.
"""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from weightscape.core import tree
from weightscape.core.checks import require
from weightscape.core.types import Scalar, Tree
from weightscape.geometry.manifold import Manifold
from weightscape.geometry.pivots import Pivot, scale_pivots
from weightscape.geometry.spheres import Sphere
from weightscape.geometry.units import joined_weights, unit_shape, with_joined_weights
from weightscape.symmetry import Symmetry

_LARGEST_ERROR = 1e-3


class SphereProduct(Manifold):
    """The product manifold of a symmetry; its points are trees with the scales of the canonical form.

    - `symmetry`: its rescalings make the spheres. Incoming weights of a single number, and units whose scale no
      single matrix tells apart, are flat.
    - `with_shifts`: whether shifts lie on the spheres of their units, or are flat.
    """

    symmetry: Symmetry
    with_shifts: bool = eqx.field(static=True, default=False, kw_only=True)

    @property
    def spheres(self) -> tuple[Pivot, ...]:
        """Where the units lie that have a sphere each."""
        pivots = scale_pivots(self.symmetry, with_shifts=self.with_shifts)
        return tuple(pivot for pivot in pivots if not pivot.joint and self._width(pivot) > 1)

    @property
    def contents(self) -> str:
        """What is on the spheres, in words."""
        return "incoming weights and shift" if self.with_shifts else "incoming weights"

    def require_point(self, x: Tree, name: str) -> None:
        """Raise unless each sphere's weights have norm one; traced weights pass."""
        for pivot in self.spheres:
            rows = self._rows(x, pivot)
            if not isinstance(rows, Tracer):
                norms = np.linalg.norm(np.asarray(rows, np.float64), axis=-1)
                worst = float(norms[np.argmax(np.abs(norms - 1))])
                group, option = self.symmetry.groups[pivot.group].name, ", with_shifts=True" * self.with_shifts
                asked = f"Units of {group} in {name} must have {self.contents} of norm 1"
                remedy = (
                    f"Pass `unit_scales(symmetry, params{option}).params`; "
                    f"remove units whose {self.contents} are all zero."
                )
                require(abs(worst - 1) < _LARGEST_ERROR, asked, worst, remedy)

    def exp(self, x: Tree, v: Tree) -> Tree:
        return self._map(jnp.add, Sphere().exp, x, v)

    def log(self, x: Tree, y: Tree) -> Tree:
        return self._map(lambda left, right: right - left, Sphere().log, x, y)

    def distance(self, x: Tree, y: Tree) -> Scalar:
        return tree.norm(self.log(x, y))

    def transport(self, x: Tree, y: Tree, v: Tree) -> Tree:
        return self._map(lambda left, right, vector: vector, Sphere().transport, x, y, v)

    def project(self, x: Tree, v: Tree) -> Tree:
        return self._map(lambda point, vector: vector, Sphere().project, x, v)

    def nearest(self, x: Tree) -> Tree:
        return self._map(lambda point: point, Sphere().nearest, x)

    def pull_back(self, x: Tree, v: Tree, w: Tree) -> Tree:
        return self._map(lambda point, way, vector: vector, Sphere().pull_back, x, v, w)

    def is_curved(self) -> Float[np.ndarray, " weight"]:
        """1 for each entry of the flat vector that lies on a sphere, 0 for the others."""
        layout = self.symmetry.layout
        zeros = jax.tree.unflatten(layout.structure, list(map(jnp.zeros, layout.shapes)))
        return np.asarray(layout.flatten(self._map(lambda point: point, jnp.ones_like, zeros)))

    @property
    def num_spheres(self) -> int:
        """How many there are, one for each unit."""
        return sum(self.symmetry.groups[pivot.group].size for pivot in self.spheres)

    @property
    def log_area(self) -> float:
        """log of the volume of all spheres together; that of one in n dimensions is 2 π^(n/2) / Γ(n/2)."""
        widths = [self._width(pivot) for pivot in self.spheres]
        counts = [self.symmetry.groups[pivot.group].size for pivot in self.spheres]
        areas = [math.log(2) + n / 2 * math.log(math.pi) - math.lgamma(n / 2) for n in widths]
        return sum(count * area for count, area in zip(counts, areas, strict=True))

    def _map(self, flat: Callable[..., Array], curved: Callable[..., Array], *trees: Tree) -> Tree:
        """`flat` of all leaves, and `curved` where there are spheres."""
        made = jax.tree.map(flat, *trees)
        for pivot in self.spheres:
            rows = curved(*(self._rows(each, pivot) for each in trees))
            made = with_joined_weights(self.symmetry, made, pivot.group, pivot.members, rows)
        return made

    def _rows(self, x: Tree, pivot: Pivot) -> Float[Array, "unit weight"]:
        weights = joined_weights(self.symmetry, x, pivot.group, pivot.members)
        return weights.reshape(len(weights), -1)

    def _width(self, pivot: Pivot) -> int:
        return sum(math.prod(unit_shape(self.symmetry, pivot.group, member)) for member in pivot.members)
