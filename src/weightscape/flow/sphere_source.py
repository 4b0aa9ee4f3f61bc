"""A source on the manifold of normalised networks.

    z = (x_1, …, x_n, r),      x_i uniform on the unit sphere of unit i's incoming weights,      r ~ N(0, 1)

The weights of a network are brought to unit scales first, which leaves its function alone; r are the weights that are
on no sphere, the last layer among them and shifts unless x_i holds them too, each divided by its scale. Densities are
with respect to the volume of the spheres and of the weights r.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from weightscape.core.checks import require
from weightscape.core.layout import Layout
from weightscape.core.types import PRNGKey, Scalar
from weightscape.flow.source import Source
from weightscape.geometry import SphereProduct, VectorManifold, unit_scales
from weightscape.geometry.pivots import scale_pivots
from weightscape.posterior import Position
from weightscape.symmetry import Symmetry

_SMALL, _MOST_UNEQUAL = 0.1, 1000.0
"""The quantile of small shifts, and how much larger their root mean square may be; of a normal it is 8 times."""

_HALF = 0.5
"""Squared norms on spheres sum to their number; each zero takes one away."""


class SphereSource(Source):
    """Uniform on spheres, normal elsewhere.

    - `symmetry`: whose rescalings make the spheres.
    - `scale`: of each weight; 1 on spheres.  `curved`: 1 for weights on spheres, 0 for the others.
    - `with_shifts`: whether a unit's shift lies on its sphere too.
    """

    scale: Float[Array, " weight"]
    curved: Float[Array, " weight"]
    symmetry: Symmetry
    layout: Layout = eqx.field(static=True)
    with_shifts: bool = eqx.field(static=True, default=False, kw_only=True)

    @staticmethod
    def of(
        symmetry: Symmetry, layout: Layout, scale: Float[Array, " weight"], *, with_shifts: bool = False
    ) -> "SphereSource":
        """The source of networks with a symmetry; `scale` counts off the spheres only."""
        product = SphereProduct(symmetry, with_shifts=with_shifts)
        missing = len(scale_pivots(symmetry)) - len(product.spheres)
        asked = f"Units that may be rescaled must each have a sphere of {product.contents}"
        came = f"{missing} groups whose units have one incoming weight, or a scale that no matrix tells"
        option = "" if with_shifts else "`with_shifts=True` where there are shifts, "
        require(missing == 0, asked, came, f"Use {option}`Euclidean()`, or a network with more inputs.")
        curved = jnp.asarray(product.is_curved(), layout.dtype)
        scale = jnp.where(curved > 0, 1.0, scale).astype(layout.dtype)
        return SphereSource(scale=scale, curved=curved, symmetry=symmetry, layout=layout, with_shifts=with_shifts)

    @property
    def product(self) -> SphereProduct:
        """Where the networks lie."""
        return SphereProduct(self.symmetry, with_shifts=self.with_shifts)

    @property
    def manifold(self) -> VectorManifold:
        """Where the vectors lie."""
        return VectorManifold(self.product, self.layout)

    def require_points(
        self, vectors: Float[np.ndarray, "draw weight"], labels: Int[np.ndarray, " weight"] | None = None
    ) -> None:
        """Raise where a unit has nothing on its sphere, and with that no direction, or next to nothing.

        - `labels`: equal for weights that may be exchanged, whose shifts are then held against each other.
        """
        lengths = np.asarray(vectors, np.float64) ** 2 @ np.asarray(self.curved, np.float64)
        broken = int(np.sum(~(np.abs(lengths - self.product.num_spheres) < _HALF)))
        asked = f"Networks of a normalised flow must have no unit whose {self.product.contents} are all zero"
        option = "" if self.with_shifts else "`with_shifts=True` where they have shifts, or "
        require(broken == 0, asked, f"{broken} with such units", f"Leave these out, or use {option}`Euclidean()`.")
        if labels is not None and not self.with_shifts:
            self._require_shifts(vectors, labels)

    def _require_shifts(self, vectors: Float[np.ndarray, "draw weight"], labels: Int[np.ndarray, " weight"]) -> None:
        """Raise where a few shifts b / ‖w‖, of units that training has shrunk to nothing, set the size of all."""
        product = SphereProduct(self.symmetry, with_shifts=True)
        for label in np.unique(labels[product.is_curved() > np.asarray(self.curved)]):
            shifts = np.abs(np.asarray(vectors[:, labels == label], np.float64))
            mean, small = float(np.sqrt(np.mean(shifts**2))), float(np.quantile(shifts, _SMALL))
            asked = f"Shifts of normalised units must be at most {_MOST_UNEQUAL:g} times as large in the mean as small"
            came = f"{mean:.3g} and {small:.3g}: incoming weights of some units have shrunk to nothing"
            remedy = "Use `with_shifts=True`, which is made for that, or `Euclidean()`."
            require(mean <= _MOST_UNEQUAL * small or small == 0, asked, came, remedy)

    def sample(self, key: PRNGKey) -> Float[Array, " weight"]:
        return self.manifold.nearest(jax.random.normal(key, self.scale.shape, self.scale.dtype))

    def log_density(self, z: Float[Array, " weight"]) -> Scalar:
        flat = (1 - self.curved) * (-0.5 * (z**2 + math.log(2 * math.pi)))
        return jnp.sum(flat) - self.product.log_area

    def position(self, z: Float[Array, " weight"]) -> Position:
        return self.layout.unflatten(self.scale * z)

    def vector(self, position: Position) -> Float[Array, " weight"]:
        normalised = unit_scales(self.symmetry, position, with_shifts=self.with_shifts).params
        return self.layout.flatten(normalised) / self.scale

    @property
    def log_volume(self) -> Scalar:
        return jnp.sum(jnp.log(self.scale))
