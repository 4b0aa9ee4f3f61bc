"""The horseshoe: most weights near zero, a few free.

    g ~ HalfCauchy(s),    λ_i ~ HalfCauchy(1),    θ_i ~ N(0, g² λ_i²)

The global scale g pulls all weights towards zero, the heavy-tailed local scales λ_i let single ones escape. The
coordinates are non-centred, θ_i = g λ_i z_i.

Reference: Carvalho, Polson & Scott (2010), The horseshoe estimator for sparse signals, equation 1.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core import tree
from weightscape.core.checks import require_positive
from weightscape.core.config import registered
from weightscape.core.numbers import number
from weightscape.core.types import PRNGKey, Scalar, Tree
from weightscape.priors.normal import log_normal
from weightscape.priors.prior import NOTHING, Constrained, Coordinates, Prior
from weightscape.priors.scales import HalfCauchy


@registered("priors.Horseshoe")
class Horseshoe(Prior):
    """θ_i ~ N(0, g² λ_i²) with half-Cauchy scales.  `scale`: s, how large the global scale g is expected to be.

    The latent variables are `{"global": g, "local": λ}`.
    """

    scale: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        require_positive("`scale` of Horseshoe", self.scale)

    @property
    def is_discrete(self) -> bool:
        return False

    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        scales = HalfCauchy(self.scale).log_density(latent["global"]) + HalfCauchy(1.0).log_density(latent["local"])
        return scales + tree.total(jax.tree.map(log_normal, params, _product(latent)))

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        return self.constrain(self.sample_coordinates(key, params_like)).params

    def sample_coordinates(self, key: PRNGKey, params_like: Tree) -> Coordinates:
        key_global, key_local, key_weights = jax.random.split(key, 3)
        one = jnp.zeros((), jax.tree.leaves(params_like)[0].dtype)
        latent = {
            "global": HalfCauchy(self.scale).sample(key_global, one),
            "local": HalfCauchy(1.0).sample(key_local, params_like),
        }
        return Coordinates(tree.normal_like(key_weights, params_like), jax.tree.map(jnp.log, latent))

    def coordinates(self, params: Tree, latent: Tree | None = None) -> Coordinates:
        if latent is None:
            latent = {
                "global": jnp.ones((), jax.tree.leaves(params)[0].dtype),
                "local": jax.tree.map(jnp.ones_like, params),
            }
        return Coordinates(jax.tree.map(jnp.divide, params, _product(latent)), jax.tree.map(jnp.log, latent))

    def constrain(self, coordinates: Coordinates) -> Constrained:
        latent = jax.tree.map(jnp.exp, coordinates.latent)
        scales = _product(latent)
        weights = jax.tree.map(jnp.multiply, coordinates.params, scales)
        log_jacobian = tree.total(coordinates.latent) + tree.total(jax.tree.map(jnp.log, scales))
        return Constrained(weights, latent, log_jacobian)


def _product(latent: Tree) -> Tree:
    """g λ_i for each weight."""
    return jax.tree.map(lambda local: latent["global"] * local, latent["local"])
