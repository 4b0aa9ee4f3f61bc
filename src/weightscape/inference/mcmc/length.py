"""How many leapfrog steps a trajectory of Hamiltonian Monte Carlo has.

A fixed number can fall in step with the target's own periods and never mix, so transition i takes
round(L (1 + jitter · (2 u_i − 1))) steps with u_i the van der Corput sequence. All chains share u_i, so vectorised
chains with one L never wait for each other.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from weightscape.core import Scalar

MOST_LEAPFROG = 1024
"""The most leapfrog steps of a trajectory whose duration is given: a tiny ε must not stop the run."""


class Length(eqx.Module):
    """A rule for the number of leapfrog steps."""

    @abc.abstractmethod
    def num_leapfrog(self, step_size: Float[Array, ""], index: Int[Array, ""]) -> Int[Array, ""]:
        """The steps of transition `index` with step size ε, at least 1."""


class Steps(Length):
    """L = `mean` steps, whatever ε is."""

    mean: Array
    jitter: Array

    def num_leapfrog(self, step_size: Float[Array, ""], index: Int[Array, ""]) -> Int[Array, ""]:
        return _rounded(self.mean * stretch(self.jitter, index))


class Duration(Length):
    """L = `time` / ε steps, at most `MOST_LEAPFROG`: a trajectory keeps its length as warm-up changes ε."""

    time: Array
    jitter: Array

    def num_leapfrog(self, step_size: Float[Array, ""], index: Int[Array, ""]) -> Int[Array, ""]:
        steps = self.time / step_size * stretch(self.jitter, index)
        return _rounded(jnp.minimum(steps, MOST_LEAPFROG))


def stretch(jitter: Array, index: Int[Array, ""]) -> Scalar:
    """1 + jitter (2u − 1) for transition `index`."""
    return 1 + jitter * (2 * van_der_corput(index) - 1)


def van_der_corput(index: Int[Array, ""]) -> Scalar:
    """The bits of `index` mirrored at the point: 1/2, 1/4, 3/4, 1/8, … for index 0, 1, 2, 3, …"""
    bits = (index + 1) >> jnp.arange(24) & 1
    return jnp.sum(bits * 0.5 ** (jnp.arange(24) + 1.0))


def _rounded(steps: Scalar) -> Int[Array, ""]:
    return jnp.maximum(1, jnp.round(steps)).astype(jnp.int32)
