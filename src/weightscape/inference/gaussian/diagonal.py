"""Independent weights: Σ = diag(s²)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core import Scalar, registered
from weightscape.core.checks import require_positive
from weightscape.inference.gaussian.covariance import Covariance


@registered("inference.Diagonal")
class Diagonal(Covariance):
    """Σ = diag(s²).  `scale`: s, the standard deviation of each weight."""

    scale: Float[Array, " weight"] = eqx.field(converter=jnp.asarray)

    def __check_init__(self):
        require_positive("`scale` of Diagonal", self.scale)

    @property
    def size(self) -> int:
        return len(self.scale)

    @property
    def num_free(self) -> int:
        return len(self.scale)

    def root(self, white: Float[Array, " weight"]) -> Float[Array, " weight"]:
        return self.scale * white

    def root_transpose(self, vector: Float[Array, " weight"]) -> Float[Array, " weight"]:
        return self.scale * vector

    def whiten(self, vector: Float[Array, " weight"]) -> Float[Array, " weight"]:
        return vector / self.scale

    def diagonal(self) -> Float[Array, " weight"]:
        return self.scale**2

    def precision_diagonal(self) -> Float[Array, " weight"]:
        return self.scale**-2

    def log_determinant(self) -> Scalar:
        return 2 * jnp.sum(jnp.log(self.scale))
