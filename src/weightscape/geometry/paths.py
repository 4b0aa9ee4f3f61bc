"""Paths between two networks.

    linear      w_t = (1 − t) a + t b
    one bend    linear from a to a point in the middle, and on to b
    geodesic    w_t = exp_a(t log_a b) on the product of spheres, for networks with normalised units

Before b is joined to a it should be moved to its equivalent that is closest to a: `rebased` does so for the linear
path, `geodesic` for the geodesic. Else a path crosses what symmetry alone has put between them.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp

from weightscape.core import tree
from weightscape.core.types import PRNGKey, Scalar, Tree
from weightscape.geometry.canonical import unit_scales
from weightscape.geometry.manifold import Manifold
from weightscape.geometry.match import Matching
from weightscape.geometry.sphere_product import SphereProduct
from weightscape.geometry.weight_matching import WeightMatching
from weightscape.symmetry import Symmetry


class Path(eqx.Module):
    """A curve of networks from t = 0 to t = 1."""

    @abc.abstractmethod
    def at(self, t: Scalar) -> Tree:
        """The network at time t."""


class Linear(Path):
    """The straight line from `start` to `end`."""

    start: Tree
    end: Tree

    def at(self, t: Scalar) -> Tree:
        return _between(self.start, self.end, t)


class OneBend(Path):
    """Two straight lines that meet in `bend` at t = 1/2 (Garipov et al. 2018, equation 3)."""

    start: Tree
    bend: Tree
    end: Tree

    def at(self, t: Scalar) -> Tree:
        first = _between(self.start, self.bend, jnp.minimum(2 * t, 1.0))
        second = _between(self.bend, self.end, jnp.maximum(2 * t - 1, 0.0))
        return jax.tree.map(lambda early, late: jnp.where(t < 0.5, early, late), first, second)


class Geodesic(Path):
    """The geodesic of `manifold` that leaves `start` with `velocity`."""

    manifold: Manifold
    start: Tree
    velocity: Tree

    @staticmethod
    def between(manifold: Manifold, start: Tree, end: Tree) -> "Geodesic":
        """The shortest one from `start` to `end`."""
        return Geodesic(manifold, start, manifold.log(start, end))

    def at(self, t: Scalar) -> Tree:
        return self.manifold.exp(self.start, tree.scale(t, self.velocity))


def rebased(key: PRNGKey, symmetry: Symmetry, start: Tree, end: Tree, *, matching: Matching | None = None) -> Linear:
    """The straight line from `start` to the equivalent of `end` that is closest to it.

    - `matching`: how that is found; weight matching where it is None.
    """
    element = (matching or WeightMatching()).match(key, symmetry, end, start).element
    return Linear(start, symmetry.apply(end, element))


def geodesic(key: PRNGKey, symmetry: Symmetry, start: Tree, end: Tree, *, matching: Matching | None = None) -> Geodesic:
    """The geodesic between equivalents of both whose units are normalised; order and signs come from the matching.

    A symmetry without rescalings has no spheres: the path is then that of `rebased`.
    """
    manifold = SphereProduct(symmetry)
    start, end = (unit_scales(symmetry, params).params for params in (start, end))
    manifold.require_point(start, "`start` of geodesic")
    manifold.require_point(end, "`end` of geodesic")
    return Geodesic.between(
        manifold, start, rebased(key, symmetry.without_scaling(), start, end, matching=matching).end
    )


def _between(start: Tree, end: Tree, t: Scalar) -> Tree:
    return jax.tree.map(lambda a, b: ((1 - t) * a + t * b).astype(a.dtype), start, end)
