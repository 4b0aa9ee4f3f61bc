"""A guide is a density over flat positions that is trained: the q of variational inference.

    vector = T(noise; φ),        log q(vector; φ)

Its numbers φ are the floating-point arrays in it. Draws are differentiable in them: noise comes from a key, and T is
smooth in φ (reparameterisation).
"""

import abc

import equinox as eqx
import jax
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, Scalar

Vector = Float[Array, " weight"]


class Guide(eqx.Module):
    """A density over flat vectors, in the order of a `Layout`. Every floating-point array in it is trained.

    One that must stay as it is goes through `jax.lax.stop_gradient` where it is used: it never moves then.
    """

    @abc.abstractmethod
    def sample_and_log_density(self, key: PRNGKey) -> tuple[Vector, Scalar]:
        """A draw, and log q of it."""

    @abc.abstractmethod
    def log_density(self, vector: Vector) -> Scalar:
        """log q(vector)."""


class MomentGuide(Guide):
    """A guide that is symmetric about its mean, with variances and an entropy that are known in closed form."""

    location: eqx.AbstractVar[Vector]

    @abc.abstractmethod
    def variance(self) -> Vector:
        """The variance of each coordinate; the mean is `location`."""

    @abc.abstractmethod
    def entropy(self) -> Scalar:
        """−E_q[log q], in nats."""


def frozen(guide: Guide) -> Guide:
    """The same density, whose numbers no gradient reaches."""
    arrays, rest = eqx.partition(guide, eqx.is_inexact_array)
    return eqx.combine(jax.lax.stop_gradient(arrays), rest)
