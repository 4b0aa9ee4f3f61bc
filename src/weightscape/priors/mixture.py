"""A scale mixture of normals: each weight is narrow or wide.

    p(θ) = Σ_k π_k N(θ; 0, σ_k²)

Reference: Blundell et al. (2015), Weight uncertainty in neural networks, equation 7.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from weightscape.core import tree
from weightscape.core.checks import require, require_positive, shape_of
from weightscape.core.config import registered
from weightscape.core.numbers import number
from weightscape.core.types import PRNGKey, Scalar, Tree
from weightscape.priors.normal import log_normal
from weightscape.priors.prior import NOTHING, RealPrior


@registered("priors.ScaleMixture")
class ScaleMixture(RealPrior):
    """θ ~ N(0, σ_k²) with probability π_k, independent for each weight.

    - `scales`: the σ_k.  `probabilities`: the π_k, which sum to one.
    """

    scales: Float[Array, " component"] = eqx.field(default=(1.0, 0.1), converter=number)
    probabilities: Float[Array, " component"] = eqx.field(default=(0.5, 0.5), converter=number)

    def __check_init__(self):
        require_positive("`scales` of ScaleMixture", self.scales)
        require_distribution("`probabilities` of ScaleMixture", self.probabilities, len(self.scales))

    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        return tree.total(jax.tree.map(self._log_density_of, params))

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        key_component, key_weights = jax.random.split(key)
        logits = jnp.log(self.probabilities)
        draw = lambda key, shape, dtype: self.scales[jax.random.categorical(key, logits, shape=shape)].astype(dtype)
        scales = tree.sample_like(key_component, draw, params_like)
        return jax.tree.map(jnp.multiply, tree.normal_like(key_weights, params_like), scales)

    def _log_density_of(self, leaf: Array) -> Array:
        component = lambda scale, probability: log_normal(leaf, scale) + jnp.log(probability)
        return jax.nn.logsumexp(jax.vmap(component)(self.scales, self.probabilities), axis=0)


def require_distribution(name: str, probabilities: Array, num: int) -> None:
    """Raise unless `probabilities` are `num` positive numbers that sum to one."""
    require(shape_of(probabilities) == (num,), f"{name} must be {num} numbers", f"shape {shape_of(probabilities)}",
            "Give one for each value.")  # fmt: skip
    require_positive(name, probabilities)
    if not isinstance(probabilities, Tracer):
        total = float(np.sum(np.asarray(probabilities, np.float64)))
        require(abs(total - 1) < 1e-5, f"{name} must sum to one", total, "Divide them by their sum.")
