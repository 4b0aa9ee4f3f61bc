"""Where a flow starts: the prior, as a density over one flat vector for each network.

    position = scale ⊙ z,      z ~ q₀

`PriorSource` has scale 1 and q₀ the prior itself. `WhitenedSource` is for priors under which all weights are
independent normals around zero: z is then standard normal, which the trigonometric path asks for.
"""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.checks import InputError
from weightscape.core.layout import Layout
from weightscape.core.types import PRNGKey, Scalar
from weightscape.posterior import Position, Posterior

_NUM_CHECKS = 4
_ROUNDING = 1e-4
_NUM_SIZES = 256
_NORMAL_MEDIAN = 0.6745
"""The median of |z| for a standard normal z."""


class Source(eqx.Module):
    """A density over vectors z, and how they are positions of a posterior."""

    layout: eqx.AbstractVar[Layout]

    @abc.abstractmethod
    def sample(self, key: PRNGKey) -> Float[Array, " weight"]:
        """z ~ q₀."""

    @abc.abstractmethod
    def log_density(self, z: Float[Array, " weight"]) -> Scalar:
        """log q₀(z)."""

    @abc.abstractmethod
    def position(self, z: Float[Array, " weight"]) -> Position:
        """The position of a vector."""

    @abc.abstractmethod
    def vector(self, position: Position) -> Float[Array, " weight"]:
        """The vector of a position."""

    @property
    @abc.abstractmethod
    def log_volume(self) -> Scalar:
        """log |det ∂position/∂z|: log q(position) = log q(z) − log_volume."""


class PriorSource(Source):
    """The prior of a posterior's positions, as it is."""

    posterior: Posterior
    layout: Layout = eqx.field(static=True)

    @staticmethod
    def of(posterior: Posterior) -> "PriorSource":
        """The source of a posterior."""
        return PriorSource(posterior=posterior, layout=_layout(posterior))

    def sample(self, key: PRNGKey) -> Float[Array, " weight"]:
        return self.layout.flatten(self.posterior.sample_prior_position(key))

    def log_density(self, z: Float[Array, " weight"]) -> Scalar:
        return self.posterior.log_prior(self.layout.unflatten(z))

    def position(self, z: Float[Array, " weight"]) -> Position:
        return self.layout.unflatten(z)

    def vector(self, position: Position) -> Float[Array, " weight"]:
        return self.layout.flatten(position)

    @property
    def log_volume(self) -> Scalar:
        return jnp.zeros(())


class WhitenedSource(Source):
    """A standard normal, for a prior of independent normals.

    - `scale`: the standard deviation of each weight.
    """

    scale: Float[Array, " weight"]
    layout: Layout = eqx.field(static=True)

    @staticmethod
    def of(posterior: Posterior) -> "WhitenedSource":
        """The source of a posterior, whose prior is asked for its scales and checked."""
        layout = _layout(posterior)
        scale = _normal_scale(posterior, layout)
        if scale is None:
            raise InputError(
                f"A whitened source needs a prior under which weights are independent normals around zero, got "
                f"{type(posterior.model.prior).__name__}. Use PriorSource."
            )
        return WhitenedSource(scale=scale, layout=layout)

    @staticmethod
    def around(posterior: Posterior) -> "WhitenedSource":
        """One for any prior: where that is no normal, a normal of the same median size, weight by weight."""
        layout = _layout(posterior)
        known = _normal_scale(posterior, layout)
        scale = _median_scale(posterior, layout) if known is None else known
        return WhitenedSource(scale=scale, layout=layout)

    def sample(self, key: PRNGKey) -> Float[Array, " weight"]:
        return jax.random.normal(key, self.scale.shape, self.scale.dtype)

    def log_density(self, z: Float[Array, " weight"]) -> Scalar:
        return -0.5 * (jnp.sum(z**2) + len(z) * math.log(2 * math.pi))

    def position(self, z: Float[Array, " weight"]) -> Position:
        return self.layout.unflatten(self.scale * z)

    def vector(self, position: Position) -> Float[Array, " weight"]:
        return self.layout.flatten(position) / self.scale

    @property
    def log_volume(self) -> Scalar:
        return jnp.sum(jnp.log(self.scale))


def source_of(posterior: Posterior) -> Source:
    """The whitened source where the prior allows it, else the prior itself."""
    layout = _layout(posterior)
    scale = _normal_scale(posterior, layout)
    if scale is None:
        return PriorSource(posterior=posterior, layout=layout)
    return WhitenedSource(scale=scale, layout=layout)


def _layout(posterior: Posterior) -> Layout:
    return Layout.of(jax.eval_shape(posterior.sample_prior_position, jax.random.key(0)))


def _median_scale(posterior: Posterior, layout: Layout) -> Float[Array, " weight"]:
    """The standard deviation of the normal that has the prior's median |θ|, one for all weights of a leaf."""
    draw = lambda key: layout.flatten(posterior.sample_prior_position(key))
    sizes = np.abs(np.asarray(jax.vmap(draw)(jax.random.split(jax.random.key(0), _NUM_SIZES))))
    scale = np.empty(layout.size, layout.dtype)
    for path in layout.paths:
        scale[layout.places(path)] = np.median(sizes[:, layout.places(path)]) / _NORMAL_MEDIAN
    return jnp.asarray(scale)


def _normal_scale(posterior: Posterior, layout: Layout) -> Float[Array, " weight"] | None:
    """The scales of independent normals around zero; None where the prior is something else.

    Of a normal, ∂ log p/∂θ_i at θ = 1 is −1/scale_i². Whether log p is the sum of normals with those scales is then
    seen at draws from the prior.
    """
    scale, ours, theirs = (np.asarray(part) for part in _as_normal(posterior, layout))
    is_normal = bool(np.all(np.isfinite(scale))) and np.allclose(ours, theirs, rtol=_ROUNDING, atol=_ROUNDING)
    return jnp.asarray(scale) if is_normal else None


@eqx.filter_jit
def _as_normal(posterior: Posterior, layout: Layout) -> tuple[Array, Array, Array]:
    """The scales, and log p of a few draws from the prior: of such normals, and of the prior itself."""
    log_prior = lambda vector: posterior.log_prior(layout.unflatten(vector))
    precision = -jax.grad(log_prior)(jnp.ones((layout.size,), layout.dtype))
    scale = jnp.where(precision > 0, precision, jnp.nan) ** -0.5
    normal = lambda vector: jnp.sum(-0.5 * (vector / scale) ** 2 - jnp.log(scale) - 0.5 * math.log(2 * math.pi))
    draw = lambda key: layout.flatten(posterior.sample_prior_position(key))
    draws = jax.vmap(draw)(jax.random.split(jax.random.key(0), _NUM_CHECKS))
    return scale, jax.vmap(normal)(draws), jax.vmap(log_prior)(draws)
