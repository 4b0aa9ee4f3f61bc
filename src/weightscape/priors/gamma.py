"""The Gamma density over positive numbers: a prior for scales.

p(σ) = r^a σ^(a−1) exp(−r σ) / Γ(a)
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

from weightscape.core import tree
from weightscape.core.checks import require_positive
from weightscape.core.config import registered
from weightscape.core.numbers import number
from weightscape.core.types import PRNGKey, Scalar, Tree
from weightscape.priors.prior import NOTHING, PositivePrior


@registered("priors.Gamma")
class Gamma(PositivePrior):
    """σ ~ Gamma(a, r), independent for each entry; mean a/r, variance a/r².

    - `concentration`: a.  `rate`: r.
    """

    concentration: Float[Array, ""] = eqx.field(converter=number)
    rate: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        require_positive("`concentration` of Gamma", self.concentration)
        require_positive("`rate` of Gamma", self.rate)

    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        a, r = self.concentration, self.rate
        log_normaliser = gammaln(a) - a * jnp.log(r)
        return tree.total(jax.tree.map(lambda x: (a - 1) * jnp.log(x) - r * x - log_normaliser, params))

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        draw = lambda key, shape, dtype: jax.random.gamma(key, self.concentration.astype(dtype), shape, dtype)
        return jax.tree.map(lambda x: x / self.rate.astype(x.dtype), tree.sample_like(key, draw, params_like))
