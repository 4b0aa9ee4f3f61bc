"""Unit spheres, one for each row of an array, and their product.

    exp_x(v)   = cos‖v‖ x + sin‖v‖ v/‖v‖
    log_x(y)   = θ e,      e = (y − ⟨x, y⟩ x) / ‖·‖,      θ = 2 atan2(‖x − y‖, ‖x + y‖)
    Γ_x→y(v)   = v + ⟨e, v⟩ ((cos θ − 1) e − sin θ x)
    (d exp_x)_v⁻¹ w = s (w − ⟨x, w⟩ x) − s² c ⟨x, w⟩ v,      θ = ‖v‖,  s = θ / sin θ,  c = (sin θ − θ cos θ) / θ³

This form of the angle (Kahan) is right to rounding from the smallest angles to the largest, where arccos ⟨x, y⟩ loses
half the digits. At the antipode y = −x every direction is shortest: `log` takes a fixed one, of length π.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.types import Scalar
from weightscape.geometry.manifold import Manifold

Rows = Float[Array, "*row weight"]
Numbers = Float[Array, "*row"]

_SMALL = 0.5
_SERIES = tuple((-1) ** (k + 1) * 2 * k / math.factorial(2 * k + 1) for k in range(7, 0, -1))
"""(sin θ − θ cos θ) / θ³ = Σ_k (−1)^(k+1) 2k/(2k+1)! θ^(2k−2), as `polyval` reads it; the next term is below 1e-15."""


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

    def nearest(self, x: Rows) -> Rows:
        length = _norm(x)
        return x / jnp.where(length > 0, length, 1.0)[..., None]

    def pull_back(self, x: Rows, v: Rows, w: Rows) -> Rows:
        """For ‖v‖ < π: beyond the antipode exp is no map to go back by."""
        angle, outwards = _norm(v), _inner(x, w)
        stretch = 1 / jnp.sinc(angle / jnp.pi)
        along = stretch**2 * _fall_short(angle) * outwards
        return stretch[..., None] * self.project(x, w) - along[..., None] * v


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


def _fall_short(angle: Numbers) -> Numbers:
    """c = (sin θ − θ cos θ) / θ³, by its series where the difference would cancel."""
    is_small = angle < _SMALL
    usual = jnp.where(is_small, 1.0, angle)
    direct = (jnp.sin(usual) - usual * jnp.cos(usual)) / usual**3
    return jnp.where(is_small, jnp.polyval(jnp.asarray(_SERIES, angle.dtype), angle**2), direct)


def _inner(x: Rows, y: Rows) -> Numbers:
    return jnp.sum(x * y, axis=-1)


def _norm(x: Rows) -> Numbers:
    """The norm of each row, with the gradient 0 at 0."""
    square = jnp.sum(x * x, axis=-1)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
