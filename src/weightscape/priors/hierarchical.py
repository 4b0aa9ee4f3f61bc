"""Hierarchical priors: the scale of the weights is itself inferred.

    τ ~ p(τ),      θ ~ N(0, τ²)

Which weights share a τ is a choice of axes: none (one τ for a leaf), the last (one for each unit, each filter), the
first (one for each input: automatic relevance determination), every axis (one for each weight). The coordinates are
non-centred by default, θ = τ z with z ~ N(0, 1), since θ and τ are strongly coupled under the prior (a funnel) and z
and τ are not. Where the data fix the weights well, centred coordinates can be the better ones.

References: Neal (1996), Bayesian Learning for Neural Networks, sections 3.1 and 4.3; Betancourt & Girolami (2013).
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from weightscape.core import tree
from weightscape.core.checks import require
from weightscape.core.config import registered
from weightscape.core.types import PRNGKey, Scalar, Tree
from weightscape.priors.normal import log_normal
from weightscape.priors.prior import NOTHING, Constrained, Coordinates, PositivePrior, Prior

EVERY_AXIS = None
"""As `along`: a scale for each single weight."""


@registered("priors.Hierarchical")
class Hierarchical(Prior):
    """θ ~ N(0, τ²) with τ ~ `scale`, one τ for each leaf and each index along the axes `along`.

    - `scale`: the prior of τ, such as `HalfNormal(1.0)` or `Gamma(2.0, 2.0)`.
    - `along`: axes with a τ for each index; `()` one for a leaf, `(-1,)` for each unit, `(0,)` for each input,
      `EVERY_AXIS` for each weight. A leaf without such an axis has one τ.
    - `shared`: one τ for all leaves together, in place of one for each (then `along` must be empty).
    - `centred`: coordinates are (θ, log τ) in place of (θ/τ, log τ).

    The latent variables are the τ, in a tree like the parameters (or a single number where `shared`).
    """

    scale: PositivePrior
    along: tuple[int, ...] | None = eqx.field(static=True, default=())
    shared: bool = eqx.field(static=True, default=False)
    centred: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        remedy = "Drop one of them."
        require(not self.shared or self.along == (), "A shared scale must have no axes of its own", self.along, remedy)

    @property
    def is_discrete(self) -> bool:
        return False

    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        scales = self._by_leaf(latent, params)
        return self.scale.log_density(latent) + tree.total(jax.tree.map(log_normal, params, scales))

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        return self.constrain(self.sample_coordinates(key, params_like)).params

    def sample_coordinates(self, key: PRNGKey, params_like: Tree) -> Coordinates:
        key_scale, key_weights = jax.random.split(key)
        scales = self.scale.sample(key_scale, self._latent_like(params_like))
        standard = tree.normal_like(key_weights, params_like)
        weights = jax.tree.map(jnp.multiply, standard, self._by_leaf(scales, params_like))
        return self.coordinates(weights, scales)

    def coordinates(self, params: Tree, latent: Tree | None = None) -> Coordinates:
        if latent is None:
            latent = jax.tree.map(lambda like: jnp.ones(like.shape, like.dtype), self._latent_like(params))
        position = self.scale.coordinates(latent).params
        if self.centred:
            return Coordinates(params, position)
        return Coordinates(jax.tree.map(jnp.divide, params, self._by_leaf(latent, params)), position)

    def constrain(self, coordinates: Coordinates) -> Constrained:
        placed = self.scale.constrain(Coordinates(coordinates.latent, NOTHING))
        if self.centred:
            return Constrained(coordinates.params, placed.params, placed.log_jacobian)
        scales = self._by_leaf(placed.params, coordinates.params)
        weights = jax.tree.map(jnp.multiply, coordinates.params, scales)
        return Constrained(weights, placed.params, placed.log_jacobian + tree.total(jax.tree.map(jnp.log, scales)))

    def _latent_like(self, params: Tree) -> Tree:
        """The shapes of τ: axes that are not in `along` have size one."""
        if self.shared:
            return jax.ShapeDtypeStruct((), jax.tree.leaves(params)[0].dtype)
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(self._scale_shape(leaf.shape), leaf.dtype), params)

    def _scale_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if self.along is None:
            return shape
        kept = {axis % len(shape) for axis in self.along if -len(shape) <= axis < len(shape)}
        return tuple(size if i in kept else 1 for i, size in enumerate(shape))

    def _by_leaf(self, scales: Tree, params: Tree) -> Tree:
        """τ broadcast to every leaf."""
        if self.shared:
            return jax.tree.map(lambda leaf: jnp.broadcast_to(scales, leaf.shape), params)
        return jax.tree.map(lambda scale, leaf: jnp.broadcast_to(scale, leaf.shape), scales, params)


def automatic_relevance(scale: PositivePrior, *, centred: bool = False) -> Hierarchical:
    """One τ_i for each input (row of a weight matrix): τ_i near zero says that input i does not matter.

    Give it to the first layer's weights: `ByPath({"layer0/weight": automatic_relevance(...), "*": Normal(1.0)})`.
    """
    return Hierarchical(scale, along=(0,), centred=centred)
