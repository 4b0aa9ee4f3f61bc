"""Riemannian manifolds: straight lines, lengths and moving directions where space is curved.

x_t = exp_x(t log_x y)      the geodesic from x to y
"""

import abc

import equinox as eqx

from weightscape.core import tree
from weightscape.core.types import PRNGKey, Scalar, Tree


class Manifold(eqx.Module):
    """A manifold in a space of trees. Its metric is the inner product of that space, on tangent vectors."""

    @abc.abstractmethod
    def exp(self, x: Tree, v: Tree) -> Tree:
        """Where the geodesic that leaves x with velocity v is at time 1."""

    @abc.abstractmethod
    def log(self, x: Tree, y: Tree) -> Tree:
        """The velocity with which a shortest geodesic leaves x to be at y at time 1."""

    @abc.abstractmethod
    def distance(self, x: Tree, y: Tree) -> Scalar:
        """The length of a shortest geodesic; ‖log_x y‖."""

    @abc.abstractmethod
    def transport(self, x: Tree, y: Tree, v: Tree) -> Tree:
        """The tangent vector v at x moved to y in parallel along the geodesic of `log(x, y)`."""

    @abc.abstractmethod
    def project(self, x: Tree, v: Tree) -> Tree:
        """The part of v that is tangent at x."""

    @abc.abstractmethod
    def nearest(self, x: Tree) -> Tree:
        """The point of the manifold that is closest to x, which may lie beside it."""

    @abc.abstractmethod
    def pull_back(self, x: Tree, v: Tree, w: Tree) -> Tree:
        """The tangent vector u at x for which exp_x(v + h u) leaves exp_x(v) with the velocity w: (d exp_x)_v u = w."""

    def geodesic(self, x: Tree, y: Tree, t: Scalar) -> Tree:
        """x_t = exp_x(t log_x y)."""
        return self.exp(x, tree.scale(t, self.log(x, y)))

    def random_tangent(self, key: PRNGKey, x: Tree) -> Tree:
        """A standard-normal tangent vector at x."""
        return self.project(x, tree.normal_like(key, x))
