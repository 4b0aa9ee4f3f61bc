"""Classes given the network's logits.

p(y = c) = softmax(outputs)_c       `Categorical`: one logit for each class
p(y = 1) = sigmoid(output)          `Bernoulli`: one logit for two classes
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from weightscape.core.checks import require_count
from weightscape.core.config import registered
from weightscape.likelihoods.likelihood import NO_OWN, ClassificationLikelihood, Own, diagonal_root


@registered("likelihoods.Categorical")
class Categorical(ClassificationLikelihood):
    """y ~ softmax(outputs) over `num_classes` classes."""

    num_classes: int = eqx.field(static=True)

    def __check_init__(self):
        require_count("`num_classes` of Categorical", self.num_classes, least=2)

    def num_outputs(self, y: Shaped[Array, "point ..."]) -> int:
        return self.num_classes

    def log_probabilities(self, outputs: Float[Array, "point class"]) -> Float[Array, "point class"]:
        return jax.nn.log_softmax(outputs, axis=1)

    def information_root(
        self, outputs: Float[Array, "point class"], own: Own = NO_OWN
    ) -> Float[Array, "point class class"]:
        # diag(p) − p pᵀ is singular, so it has no Cholesky factor; diag(√p) − p √pᵀ is a root.
        probabilities = self.probabilities(outputs)
        roots = jnp.sqrt(probabilities)
        return diagonal_root(roots) - probabilities[:, :, None] * roots[:, None, :]


@registered("likelihoods.Bernoulli")
class Bernoulli(ClassificationLikelihood):
    """y ~ Bernoulli(sigmoid(output)), for classes 0 and 1."""

    num_classes: int = eqx.field(static=True, default=2, init=False)

    def num_outputs(self, y: Shaped[Array, "point ..."]) -> int:
        return 1

    def log_probabilities(self, outputs: Float[Array, "point 1"]) -> Float[Array, "point 2"]:
        return jnp.concatenate([jax.nn.log_sigmoid(-outputs), jax.nn.log_sigmoid(outputs)], axis=1)

    def information_root(self, outputs: Float[Array, "point 1"], own: Own = NO_OWN) -> Float[Array, "point 1 1"]:
        return diagonal_root(jnp.exp(0.5 * (jax.nn.log_sigmoid(outputs) + jax.nn.log_sigmoid(-outputs))))
