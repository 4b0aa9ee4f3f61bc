"""Student-t noise: outliers have bounded influence.

(y − f(x)) / s ~ t with ν degrees of freedom
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.scipy.special import betainc
from jax.scipy.stats import t as student_t
from jaxtyping import Array, Float, Shaped

from weightscape.core.checks import require
from weightscape.core.config import registered
from weightscape.core.numbers import number
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
from weightscape.priors.heavy import draw_student_t


@registered("likelihoods.StudentT")
class StudentT(RegressionLikelihood):
    """y = f(x) + s ε with ε ~ t_ν, independent for each entry of the target; variance s² ν/(ν − 2).

    - `degrees`: ν, larger than 2, so that predictions have a variance.
    - `scale`: s, a number (or one for each entry); or a prior, and s is inferred beside the weights.
    - `num_scales`: how many scales are inferred: 1 for all entries together, or one for each.
    """

    degrees: Float[Array, ""] = eqx.field(default=4.0, converter=number)
    scale: Float[Array, "..."] | Prior = eqx.field(default=1.0, converter=noise_scale)
    num_scales: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        check_scale(self.scale, self.num_scales, "StudentT")
        if not isinstance(self.degrees, Tracer):
            degrees = float(self.degrees)
            require(degrees > 2, "`degrees` of StudentT must be larger than 2", degrees, "Pass 2.1 or more.")

    def num_outputs(self, y: Shaped[Array, "point ..."]) -> int:
        return num_columns(y)

    def check_targets(self, y: Shaped[Array, "point ..."]) -> None:
        require_target_shape(y)

    def own_priors(self) -> dict[str, Prior]:
        return scale_prior(self.scale)

    def own_shapes(self) -> dict[str, tuple[int, ...]]:
        return scale_shape(self.scale, self.num_scales)

    def log_density(
        self, outputs: Float[Array, "point output"], y: Float[Array, "point ..."], own: Own = NO_OWN
    ) -> Float[Array, " point"]:
        scale = current_scale(self.scale, own)
        standardised = (as_columns(y) - outputs) / scale
        return jnp.sum(student_t.logpdf(standardised, self.degrees) - jnp.log(scale), axis=1)

    def sample(
        self, key: PRNGKey, outputs: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point output"]:
        noise = draw_student_t(key, self.degrees.astype(outputs.dtype), outputs.shape, outputs.dtype)
        return outputs + current_scale(self.scale, own) * noise

    def information_root(
        self, outputs: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point coordinate factor"]:
        ratio = (self.degrees + 1) / (self.degrees + 3)
        of_outputs = jnp.broadcast_to(jnp.sqrt(ratio) / current_scale(self.scale, own), outputs.shape)
        one = jnp.sqrt(2 * self.degrees / (self.degrees + 3))
        return diagonal_root(of_outputs, scale_information_root(self.scale, own, one, outputs))

    def mean(self, outputs: Float[Array, "point output"], own: Own = NO_OWN) -> Float[Array, "point output"]:
        return outputs

    def variance(self, outputs: Float[Array, "point output"], own: Own = NO_OWN) -> Float[Array, "point output"]:
        variance = current_scale(self.scale, own) ** 2 * self.degrees / (self.degrees - 2)
        return jnp.broadcast_to(variance, outputs.shape)

    def cumulative(
        self, outputs: Float[Array, "point output"], y: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point output"]:
        standardised = (y - outputs) / current_scale(self.scale, own)
        fraction = self.degrees / (self.degrees + standardised**2)
        tail = 0.5 * betainc(self.degrees / 2, np.asarray(0.5, outputs.dtype), fraction)
        return jnp.where(standardised > 0, 1 - tail, tail)
