"""Unit spheres, one for each row of an array, and their product.

    exp_x(v)   = cos‖v‖ x + sin‖v‖ v/‖v‖
    log_x(y)   = θ e,      e = (y − ⟨x, y⟩ x) / ‖·‖,      θ = 2 atan2(‖x − y‖, ‖x + y‖)
    Γ_x→y(v)   = v + ⟨e, v⟩ ((cos θ − 1) e − sin θ x)

This form of the angle (Kahan) is right to rounding from the smallest angles to the largest, where arccos ⟨x, y⟩ loses
half the digits. At the antipode y = −x every direction is shortest: `log` takes a fixed one, of length π.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.types import Scalar
from weightscape.geometry.manifold import Manifold

Rows = Float[Array, "*row weight"]
Numbers = Float[Array, "*row"]


class Sphere(Manifold):
    """The product of the unit spheres that the rows of an array lie on: the last axis holds one point.

    Example:
    >>> sphere = Sphere()
    >>> float(sphere.distance(jnp.array([[1.0, 0.0]]), jnp.array([[0.0, 1.0]])))
    1.5707963705062866
    """

    def exp(self, x: Rows, v: Rows) -> Rows:
        angle = _norm(v)
        return jnp.cos(angle)[..., None] * x + jnp.sinc(angle / jnp.pi)[..., None] * v

    def log(self, x: Rows, y: Rows) -> Rows:
        way = _way(x, y)
        return way.angle[..., None] * way.direction

    def distance(self, x: Rows, y: Rows) -> Scalar:
        return _norm(self.angles(x, y).reshape(-1))

    def angles(self, x: Rows, y: Rows) -> Numbers:
        """The distance in each row."""
        return 2 * jnp.arctan2(_norm(x - y), _norm(x + y))

    def transport(self, x: Rows, y: Rows, v: Rows) -> Rows:
        way = _way(x, y)
        along = _inner(way.direction, v)
        # cos θ − 1 without cancellation at small angles.
        fall = -2 * jnp.sin(way.angle / 2) ** 2
        return v + (along * fall)[..., None] * way.direction - (along * jnp.sin(way.angle))[..., None] * x

    def project(self, x: Rows, v: Rows) -> Rows:
        return v - _inner(x, v)[..., None] * x


class _Way(NamedTuple):
    """How to go: a unit tangent vector (zero where there is no way to go) and an angle."""

    direction: Rows
    angle: Numbers


def _way(x: Rows, y: Rows) -> _Way:
    sphere = Sphere()
    # The difference is exact where x and y are close, and a second projection removes what rounding left of x.
    tangent = sphere.project(x, sphere.project(x, y - x))
    length = _norm(tangent)
    moves = length > 0
    usual = tangent / jnp.where(moves, length, 1.0)[..., None]
    is_antipode = ~moves & (_inner(x, y) < 0)
    return _Way(jnp.where(is_antipode[..., None], _some_tangent(x), usual), sphere.angles(x, y))


def _some_tangent(x: Rows) -> Rows:
    """A unit tangent vector: the part of the axis that is most across to x."""
    axis = jax.nn.one_hot(jnp.argmin(jnp.abs(x), axis=-1), x.shape[-1], dtype=x.dtype)
    across = Sphere().project(x, axis)
    length = _norm(across)
    return across / jnp.where(length > 0, length, 1.0)[..., None]


def _inner(x: Rows, y: Rows) -> Numbers:
    return jnp.sum(x * y, axis=-1)


def _norm(x: Rows) -> Numbers:
    """The norm of each row, with the gradient 0 at 0."""
    square = jnp.sum(x * x, axis=-1)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
