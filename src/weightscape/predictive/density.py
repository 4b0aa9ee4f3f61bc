"""The log density of targets under the predictive mixture.

    log p(y | x, D) = log Σ_i w_i p(y | f(x; θ_i), φ_i)

The sum runs in logs. A vector target is one event: its entries are multiplied within a component, not after mixing.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from weightscape.predictive.components import Components
from weightscape.predictive.marginal import Density


def log_density(likelihood: Density, components: Components, y: Shaped[Array, "point ..."]) -> Float[Array, " point"]:
    """log p(y | x, D) at each point, in the units the likelihood sees."""
    each = jax.vmap(lambda outputs, own: likelihood.log_density(outputs, y, own))(components.outputs, components.own)
    return jax.scipy.special.logsumexp(each + jnp.log(components.weights)[:, None], axis=0)
