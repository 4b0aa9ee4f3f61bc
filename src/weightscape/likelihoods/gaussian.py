"""Gaussian noise around the network's output.

    y ~ N(f(x), σ²)                 `Gaussian`, σ fixed or inferred under a prior
    y ~ N(f(x), exp(2 g(x)))        `HeteroscedasticGaussian`, the network gives mean f and log-scale g

Scales are in the units the network sees: where a batch carries a scaling, those of the standardised targets.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Shaped

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
from weightscape.likelihoods.noise import (
    check_scale,
    current_scale,
    noise_scale,
    scale_information_root,
    scale_prior,
    scale_shape,
)
from weightscape.priors import Prior


@registered("likelihoods.Gaussian")
class Gaussian(RegressionLikelihood):
    """y ~ N(f(x), σ²), independent for each entry of the target.

    - `scale`: σ, a number (or one for each entry); or a prior such as `priors.Gamma(0.5, 1.0)`, and σ is inferred
      beside the weights.
    - `num_scales`: how many scales are inferred: 1 for all entries together, or one for each.
    """

    scale: Float[Array, "..."] | Prior = eqx.field(default=1.0, converter=noise_scale)
    num_scales: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        check_scale(self.scale, self.num_scales, "Gaussian")

    def check_targets(self, y: Shaped[Array, "point ..."]) -> None:
        require_target_shape(y)

    def num_outputs(self, y: Shaped[Array, "point ..."]) -> int:
        return num_columns(y)

    def own_priors(self) -> dict[str, Prior]:
        return scale_prior(self.scale)

    def own_shapes(self) -> dict[str, tuple[int, ...]]:
        return scale_shape(self.scale, self.num_scales)

    def log_density(
        self, outputs: Float[Array, "point output"], y: Float[Array, "point ..."], own: Own = NO_OWN
    ) -> Float[Array, " point"]:
        return jnp.sum(norm.logpdf(as_columns(y), outputs, current_scale(self.scale, own)), axis=1)

    def sample(
        self, key: PRNGKey, outputs: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point output"]:
        return outputs + current_scale(self.scale, own) * jax.random.normal(key, outputs.shape, outputs.dtype)

    def information_root(
        self, outputs: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point coordinate factor"]:
        of_outputs = jnp.broadcast_to(1 / current_scale(self.scale, own), outputs.shape)
        return diagonal_root(of_outputs, scale_information_root(self.scale, own, jnp.sqrt(2.0), outputs))

    def mean(self, outputs: Float[Array, "point output"], own: Own = NO_OWN) -> Float[Array, "point output"]:
        return outputs

    def variance(self, outputs: Float[Array, "point output"], own: Own = NO_OWN) -> Float[Array, "point output"]:
        return jnp.broadcast_to(current_scale(self.scale, own) ** 2, outputs.shape)

    def cumulative(
        self, outputs: Float[Array, "point output"], y: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point output"]:
        return norm.cdf(y, outputs, current_scale(self.scale, own))


@registered("likelihoods.HeteroscedasticGaussian")
class HeteroscedasticGaussian(RegressionLikelihood):
    """y ~ N(f(x), exp(2 g(x))): the first half of the outputs are means f, the second half log-scales g."""

    def num_outputs(self, y: Shaped[Array, "point ..."]) -> int:
        return 2 * num_columns(y)

    def check_targets(self, y: Shaped[Array, "point ..."]) -> None:
        require_target_shape(y)

    def own_priors(self) -> dict[str, Prior]:
        return {}

    def own_shapes(self) -> dict[str, tuple[int, ...]]:
        return {}

    def log_density(
        self, outputs: Float[Array, "point output"], y: Float[Array, "point ..."], own: Own = NO_OWN
    ) -> Float[Array, " point"]:
        mean, log_scale = jnp.split(outputs, 2, axis=1)
        # The log-scale is used as it is: log(exp(g)) would overflow where g is large.
        standardised = (as_columns(y) - mean) * jnp.exp(-log_scale)
        return jnp.sum(norm.logpdf(standardised) - log_scale, axis=1)

    def sample(
        self, key: PRNGKey, outputs: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point target"]:
        mean, log_scale = jnp.split(outputs, 2, axis=1)
        return mean + jnp.exp(log_scale) * jax.random.normal(key, mean.shape, mean.dtype)

    def information_root(
        self, outputs: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point coordinate factor"]:
        log_scale = jnp.split(outputs, 2, axis=1)[1]
        return diagonal_root(jnp.exp(-log_scale), jnp.full_like(log_scale, np.sqrt(2.0)))

    def mean(self, outputs: Float[Array, "point output"], own: Own = NO_OWN) -> Float[Array, "point target"]:
        return jnp.split(outputs, 2, axis=1)[0]

    def variance(self, outputs: Float[Array, "point output"], own: Own = NO_OWN) -> Float[Array, "point target"]:
        return jnp.exp(2 * jnp.split(outputs, 2, axis=1)[1])

    def cumulative(
        self, outputs: Float[Array, "point output"], y: Float[Array, "point target"], own: Own = NO_OWN
    ) -> Float[Array, "point target"]:
        mean, log_scale = jnp.split(outputs, 2, axis=1)
        return norm.cdf(y, mean, jnp.exp(log_scale))
