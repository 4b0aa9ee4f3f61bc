"""Counts given the network's log-rate.

y ~ Poisson(exp(outputs))
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaincc, gammaln
from jaxtyping import Array, Float, Shaped

from weightscape.core.checks import require
from weightscape.core.config import registered
from weightscape.core.types import PRNGKey
from weightscape.likelihoods.likelihood import (
    NO_OWN,
    Own,
    RegressionLikelihood,
    as_columns,
    diagonal_root,
    num_columns,
    require_target_shape,
)
from weightscape.priors import Prior


@registered("likelihoods.Poisson")
class Poisson(RegressionLikelihood):
    """y ~ Poisson(exp(output)), independent for each entry of the target.

    Counts are used as they are: a batch may carry a scaling of its inputs, `Scaling(x_mean, x_scale)`, but none of its
    targets. Quantiles of a count are where the cumulative distribution jumps.
    """

    def num_outputs(self, y: Shaped[Array, "point ..."]) -> int:
        return num_columns(y)

    def check_targets(self, y: Shaped[Array, "point ..."]) -> None:
        require_target_shape(y)
        counts = np.asarray(y)
        whole = bool(np.all((counts >= 0) & (counts == np.floor(counts))))
        came = f"values such as {counts.ravel()[np.argmin((counts >= 0) & (counts == np.floor(counts)))]}"
        remedy = "Use another likelihood, or a scaling that leaves the targets as they are."
        require(whole, "Targets of Poisson must be whole numbers of at least 0", came, remedy)

    def own_priors(self) -> dict[str, Prior]:
        return {}

    def own_shapes(self) -> dict[str, tuple[int, ...]]:
        return {}

    def log_density(
        self, outputs: Float[Array, "point output"], y: Float[Array, "point ..."], own: Own = NO_OWN
    ) -> Float[Array, " point"]:
        counts = as_columns(y)
        return jnp.sum(counts * outputs - jnp.exp(outputs) - gammaln(counts + 1), axis=1)

    def sample(
        self, key: PRNGKey, outputs: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point output"]:
        return jax.random.poisson(key, jnp.exp(outputs)).astype(outputs.dtype)

    def information_root(
        self, outputs: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point coordinate factor"]:
        return diagonal_root(jnp.exp(outputs / 2))

    def mean(self, outputs: Float[Array, "point output"], own: Own = NO_OWN) -> Float[Array, "point output"]:
        return jnp.exp(outputs)

    def variance(self, outputs: Float[Array, "point output"], own: Own = NO_OWN) -> Float[Array, "point output"]:
        return jnp.exp(outputs)

    def cumulative(
        self, outputs: Float[Array, "point output"], y: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point output"]:
        below = gammaincc(jnp.maximum(jnp.floor(y), 0) + 1, jnp.exp(outputs))
        return jnp.where(y < 0, 0.0, below)
