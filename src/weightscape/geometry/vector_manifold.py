"""A manifold of trees as one of flat vectors, for what works on vectors: flows, solvers, couplings."""

from collections.abc import Callable

from jaxtyping import Array, Float

from weightscape.core.layout import Layout
from weightscape.core.types import Scalar, Tree
from weightscape.geometry.manifold import Manifold

Vector = Float[Array, " weight"]


class VectorManifold(Manifold):
    """The points of `manifold` as vectors that `layout` flattens them to."""

    manifold: Manifold
    layout: Layout

    def exp(self, x: Vector, v: Vector) -> Vector:
        return self._vector(self.manifold.exp, x, v)

    def log(self, x: Vector, y: Vector) -> Vector:
        return self._vector(self.manifold.log, x, y)

    def distance(self, x: Vector, y: Vector) -> Scalar:
        return self.manifold.distance(self.layout.unflatten(x), self.layout.unflatten(y))

    def transport(self, x: Vector, y: Vector, v: Vector) -> Vector:
        return self._vector(self.manifold.transport, x, y, v)

    def project(self, x: Vector, v: Vector) -> Vector:
        return self._vector(self.manifold.project, x, v)

    def nearest(self, x: Vector) -> Vector:
        return self._vector(self.manifold.nearest, x)

    def pull_back(self, x: Vector, v: Vector, w: Vector) -> Vector:
        return self._vector(self.manifold.pull_back, x, v, w)

    def _vector(self, function: Callable[..., Tree], *vectors: Vector) -> Vector:
        return self.layout.flatten(function(*map(self.layout.unflatten, vectors)))
