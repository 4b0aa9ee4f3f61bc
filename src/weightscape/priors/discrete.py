"""Discrete weights: each takes one of a few values.

    P(θ = v_k) = π_k

There is no gradient to follow: sample with Metropolis–Hastings and flip proposals.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core import tree
from weightscape.core.config import registered
from weightscape.core.numbers import number
from weightscape.core.types import PRNGKey, Scalar, Tree
from weightscape.priors.mixture import require_distribution
from weightscape.priors.prior import NOTHING, Constrained, Coordinates, Prior


@registered("priors.Discrete")
class Discrete(Prior):
    """θ ∈ {v_1, …, v_K} with probabilities π_k, independent for each weight.

    - `values`: the v_k.  `probabilities`: the π_k, which sum to one.

    A weight that is none of the values has log density −∞. See `binary`, `signs` and `ternary`.
    """

    values: Float[Array, " value"] = eqx.field(converter=number)
    probabilities: Float[Array, " value"] = eqx.field(converter=number)

    def __check_init__(self):
        require_distribution("`probabilities` of Discrete", self.probabilities, len(self.values))

    @property
    def is_discrete(self) -> bool:
        return True

    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        return tree.total(jax.tree.map(self._log_probability, params))

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        logits = jnp.log(self.probabilities)
        draw = lambda key, shape, dtype: self.values[jax.random.categorical(key, logits, shape=shape)].astype(dtype)
        return tree.sample_like(key, draw, params_like)

    def sample_coordinates(self, key: PRNGKey, params_like: Tree) -> Coordinates:
        return Coordinates(self.sample(key, params_like), NOTHING)

    def coordinates(self, params: Tree, latent: Tree | None = None) -> Coordinates:
        """The nearest values: a starting point of any weights."""
        return Coordinates(jax.tree.map(self._nearest, params), NOTHING)

    def constrain(self, coordinates: Coordinates) -> Constrained:
        return Constrained(coordinates.params, NOTHING, jnp.zeros(()))

    def _log_probability(self, leaf: Array) -> Array:
        matches = leaf[..., None] == self.values.astype(leaf.dtype).reshape((1,) * leaf.ndim + (-1,))
        log_probabilities = jnp.log(self.probabilities).reshape((1,) * leaf.ndim + (-1,))
        return jnp.max(jnp.where(matches, log_probabilities, -jnp.inf), axis=-1)

    def _nearest(self, leaf: Array) -> Array:
        distance = jnp.abs(leaf[..., None] - self.values.reshape((1,) * leaf.ndim + (-1,)))
        return self.values[jnp.argmin(distance, axis=-1)].astype(leaf.dtype)


def binary(probability: float = 0.5) -> Discrete:
    """Weights in {0, 1}, one with the given probability."""
    return Discrete((0.0, 1.0), (1 - probability, probability))


def signs(probability: float = 0.5) -> Discrete:
    """Weights in {−1, +1}, plus with the given probability."""
    return Discrete((-1.0, 1.0), (1 - probability, probability))


def ternary(zero_probability: float = 1 / 3) -> Discrete:
    """Weights in {−1, 0, +1}, zero with the given probability and both signs alike."""
    return Discrete((-1.0, 0.0, 1.0), ((1 - zero_probability) / 2, zero_probability, (1 - zero_probability) / 2))
