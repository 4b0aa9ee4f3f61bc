"""The Kullback–Leibler divergence between Gaussian approximations of one posterior.

    KL(N_0 ‖ N_1) = ½ (tr Σ_1⁻¹Σ_0 + |R_1⁻¹(μ_1 − μ_0)|² − d + log |Σ_1| − log |Σ_0|)

The trace is ‖R_1⁻¹ R_0‖² over columns; where one of the two is diagonal only the other's diagonal is needed.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core import Scalar
from weightscape.core.checks import require
from weightscape.inference.gaussian.covariance import Covariance
from weightscape.inference.gaussian.diagonal import Diagonal
from weightscape.inference.gaussian.gaussian import Gaussian

_COLUMNS = 256


def kl_divergence(of: Gaussian, to: Gaussian) -> Scalar:
    """KL(of ‖ to) in nats."""
    same = of.layout.size == to.layout.size and of.is_proper and to.is_proper
    remedy = "Approximate all weights of the same network with both."
    came = f"{of.covariance.num_free} and {to.covariance.num_free} free weights"
    require(same, "Divergent Gaussians must be over the same weights", came, remedy)
    return _kl(to.location - of.location, of.covariance, to.covariance)


@eqx.filter_jit
def _kl(shift: Float[Array, " weight"], of: Covariance, to: Covariance) -> Scalar:
    log_ratio = to.log_determinant() - of.log_determinant()
    return 0.5 * (_trace(of, to) + jnp.sum(to.whiten(shift) ** 2) - len(shift) + log_ratio)


def _trace(of: Covariance, to: Covariance) -> Scalar:
    """tr Σ_1⁻¹ Σ_0."""
    if isinstance(of, Diagonal) or isinstance(to, Diagonal):
        return jnp.sum(of.diagonal() * to.precision_diagonal())
    dtype = of.diagonal().dtype

    def column(i):
        unit = jnp.zeros((of.size,), dtype).at[i].set(1)
        return jnp.sum(to.whiten(of.root(unit)) ** 2)

    return jnp.sum(jax.lax.map(column, jnp.arange(of.size), batch_size=min(_COLUMNS, of.size)))
