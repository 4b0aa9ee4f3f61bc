"""Paths from a source point x₀ to a target point x₁.

    x_t = a(t) x₀ + b(t) x₁,      u_t = ȧ(t) x₀ + ḃ(t) x₁,      a(0) = b(1) = 1,  a(1) = b(0) = 0

The velocity field of the flow is v(t, x) = E[u_t | x_t = x], which a regression on u_t learns (Lipman et al. 2023).
Where a model predicts the target instead, x̂₁(t, x) ≈ E[x₁ | x_t = x], the same velocity is

    v = (ȧ/a) x + (ḃ − b ȧ/a) x̂₁                           not x̂₁ − x₀, which loses spread

for the straight path (x̂₁ − x) / (1 − t).

On a manifold the path is the geodesic x_t = exp_{x₀}(t log_{x₀} x₁), straight where the manifold is flat, and u_t is
tangent at x_t (Chen & Lipman 2024, Flow matching on general geometries).
"""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core import registered
from weightscape.core.types import Scalar
from weightscape.geometry import Manifold


class Coefficients(NamedTuple):
    """a, b and their derivatives by t."""

    a: Scalar
    b: Scalar
    a_rate: Scalar
    b_rate: Scalar


class Path(eqx.Module):
    """A way from each source point to each target point."""

    @abc.abstractmethod
    def coefficients(self, time: Scalar) -> Coefficients:
        """a, b, ȧ, ḃ at a time in [0, 1]; on a manifold those of its flat directions."""

    @abc.abstractmethod
    def point(self, time: Scalar, source: Float[Array, "..."], target: Float[Array, "..."]) -> Float[Array, "..."]:
        """x_t."""

    @abc.abstractmethod
    def rate(self, time: Scalar, source: Float[Array, "..."], target: Float[Array, "..."]) -> Float[Array, "..."]:
        """u_t."""

    @abc.abstractmethod
    def leads_to(self, time: Scalar, x: Float[Array, "..."], velocity: Float[Array, "..."]) -> Float[Array, "..."]:
        """The target x̂₁ of the path that passes x with a velocity."""

    @abc.abstractmethod
    def tangent(self, x: Float[Array, "..."], vector: Float[Array, "..."]) -> Float[Array, "..."]:
        """The part of a vector that velocities at x may have."""


class FlatPath(Path):
    """A path given by two functions of time."""

    def point(self, time: Scalar, source: Float[Array, "..."], target: Float[Array, "..."]) -> Float[Array, "..."]:
        at = self.coefficients(time)
        return at.a * source + at.b * target

    def rate(self, time: Scalar, source: Float[Array, "..."], target: Float[Array, "..."]) -> Float[Array, "..."]:
        at = self.coefficients(time)
        return at.a_rate * source + at.b_rate * target

    def leads_to(self, time: Scalar, x: Float[Array, "..."], velocity: Float[Array, "..."]) -> Float[Array, "..."]:
        at = self.coefficients(time)
        return (at.a * velocity - at.a_rate * x) / (at.a * at.b_rate - at.b * at.a_rate)

    def comes_from(self, time: Scalar, x: Float[Array, "..."], target: Float[Array, "..."]) -> Float[Array, "..."]:
        """The source x̂₀ of the path that passes x on its way to a target, before it is there."""
        at = self.coefficients(time)
        return (x - at.b * target) / at.a

    def tangent(self, x: Float[Array, "..."], vector: Float[Array, "..."]) -> Float[Array, "..."]:
        return vector


@registered("flow.Straight")
class Straight(FlatPath):
    """x_t = (1 − t) x₀ + t x₁."""

    def coefficients(self, time: Scalar) -> Coefficients:
        one = jnp.ones_like(time)
        return Coefficients(one - time, time * one, -one, one)


@registered("flow.Trigonometric")
class Trigonometric(FlatPath):
    """x_t = cos(πt/2) x₀ + sin(πt/2) x₁.

    A weight that is standard normal under source and target, and independent of all others, is so at all times: its
    velocity is zero. The data move only what they inform.
    """

    def coefficients(self, time: Scalar) -> Coefficients:
        half_turn = jnp.pi / 2
        cosine, sine = jnp.cos(half_turn * time), jnp.sin(half_turn * time)
        return Coefficients(cosine, sine, -half_turn * sine, half_turn * cosine)


class GeodesicPath(Path):
    """x_t = exp_{x₀}(t log_{x₀} x₁) on `manifold`, at constant speed."""

    manifold: Manifold

    def coefficients(self, time: Scalar) -> Coefficients:
        return Straight().coefficients(time)

    def point(self, time: Scalar, source: Float[Array, "..."], target: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.manifold.geodesic(source, target, time)

    def rate(self, time: Scalar, source: Float[Array, "..."], target: Float[Array, "..."]) -> Float[Array, "..."]:
        along = lambda time: self.manifold.geodesic(source, target, time)
        return jax.jvp(along, (time,), (jnp.ones_like(time),))[1]

    def leads_to(self, time: Scalar, x: Float[Array, "..."], velocity: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.manifold.exp(self.manifold.nearest(x), (1 - time) * velocity)

    def tangent(self, x: Float[Array, "..."], vector: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.manifold.project(self.manifold.nearest(x), vector)


def point(path: Path, time: Scalar, source: Float[Array, "..."], target: Float[Array, "..."]) -> Float[Array, "..."]:
    """x_t."""
    return path.point(time, source, target)


def rate(path: Path, time: Scalar, source: Float[Array, "..."], target: Float[Array, "..."]) -> Float[Array, "..."]:
    """u_t."""
    return path.rate(time, source, target)


def velocity_of_target(
    path: Path, time: Scalar, x: Float[Array, "..."], target: Float[Array, "..."]
) -> Float[Array, "..."]:
    """The velocity at x of a model that predicts the target; not finite at t = 1, where a = 0."""
    at = path.coefficients(time)
    return (at.a_rate / at.a) * x + (at.b_rate - at.b * at.a_rate / at.a) * target
