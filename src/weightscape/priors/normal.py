"""Normal priors over weights, independent for each weight.

θ_i ~ N(0, σ²)                       `Normal`: one σ, or one for each leaf
W_ij ~ N(0, σ²/H),  b ~ N(0, σ_b²)   `FanInNormal`: H inputs to the unit; the wide limit is a Gaussian process
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core import tree
from weightscape.core.checks import InputError, require_positive
from weightscape.core.config import registered
from weightscape.core.numbers import number
from weightscape.core.types import PRNGKey, Scalar, Tree
from weightscape.priors.prior import NOTHING, RealPrior


def _numbers(scale: Tree) -> Tree:
    return jax.tree.map(number, scale)


@registered("priors.Normal")
class Normal(RealPrior):
    """θ ~ N(0, σ²), independent for each weight.

    - `scale`: σ, a number; or a tree of numbers that is a prefix of the parameter tree, such as
      `{"layer0": 1.0, "layer1": {"weight": 0.5, "bias": 2.0}}`.

    Example:
    >>> float(Normal(scale=2.0).log_density({"w": jnp.zeros(())}).round(4))
    -1.6121
    """

    scale: Tree = eqx.field(default=1.0, converter=_numbers)

    def __check_init__(self):
        jax.tree.map(lambda leaf: require_positive("`scale` of Normal", leaf), self.scale)

    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        return tree.total(jax.tree.map(log_normal, params, _by_leaf(self.scale, params)))

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        return jax.tree.map(_times, tree.normal_like(key, params_like), _by_leaf(self.scale, params_like))

    def scales(self, params_like: Tree) -> Tree:
        """σ of each leaf."""
        return _by_leaf(self.scale, params_like)


@registered("priors.FanInNormal")
class FanInNormal(RealPrior):
    """W_ij ~ N(0, σ²/H) with H the number of inputs to a unit; leaves of rank 0 or 1 ~ N(0, σ_b²).

    - `scale`: σ.  `bias_scale`: σ_b.

    A kernel of shape (…, inputs, units) has H = the product of all axes but the last.
    An LSTM's weights (inputs, gates, units) would count the gates as inputs: give them a `Normal` through `ByPath`.
    Reference: Neal (1996), Bayesian Learning for Neural Networks, section 2.1.
    """

    scale: Float[Array, ""] = eqx.field(default=1.0, converter=number)
    bias_scale: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        require_positive("`scale` of FanInNormal", self.scale)
        require_positive("`bias_scale` of FanInNormal", self.bias_scale)

    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        return tree.total(jax.tree.map(lambda leaf: log_normal(leaf, self._scale_of(leaf)), params))

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        return jax.tree.map(lambda leaf: leaf * self._scale_of(leaf), tree.normal_like(key, params_like))

    def scales(self, params_like: Tree) -> Tree:
        """The standard deviation of each leaf's entries."""
        return jax.tree.map(self._scale_of, params_like)

    def _scale_of(self, leaf: Array) -> Array:
        if len(leaf.shape) < 2:
            return self.bias_scale.astype(leaf.dtype)
        return (self.scale / np.sqrt(np.prod(leaf.shape[:-1]))).astype(leaf.dtype)


def _by_leaf(scale: Tree, params: Tree) -> Tree:
    """One scale for each leaf of `params`, where `scale` may stop at an inner node."""
    try:
        return jax.tree.broadcast(scale, params)
    except ValueError as error:
        leaves = ", ".join(tree.named_leaves(params))
        raise InputError(
            f"`scale` of Normal must be a number or a prefix of the parameter tree, got {scale}. "
            f"The parameters are: {leaves}."
        ) from error


def log_normal(leaf: Array, scale: Array) -> Array:
    """log N(leaf; 0, scale²), entry by entry."""
    standardised = leaf / scale
    return -0.5 * standardised**2 - jnp.log(scale) - 0.5 * np.log(2 * np.pi).astype(leaf.dtype)


def _times(leaf: Array, scale: Array) -> Array:
    return leaf * scale.astype(leaf.dtype)
