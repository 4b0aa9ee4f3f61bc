"""Class probabilities of the predictive mixture, and the split of their entropy.

p̄ = Σ_i w_i p_i                                    probabilities are averaged, never logits
H[p̄] = Σ_i w_i H[p_i]  +  Σ_i w_i KL(p_i ‖ p̄)       H[p] = −Σ_c p_c log p_c, in nats
total   expected (aleatoric)  mutual information (epistemic)
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import entr
from jaxtyping import Array, Float

from weightscape.likelihoods import ClassificationLikelihood
from weightscape.predictive.components import Components


class Classes(NamedTuple):
    """p̄, H[p̄] and the expected entropy of single draws."""

    probabilities: Float[Array, "point class"]
    entropy: Float[Array, " point"]
    expected_entropy: Float[Array, " point"]


def classes(likelihood: ClassificationLikelihood, components: Components) -> Classes:
    """Probabilities and entropies of the mixture at each point."""
    each = jax.vmap(likelihood.probabilities)(components.outputs)
    probabilities = components.average(each)
    expected_entropy = components.average(jnp.sum(entr(each), axis=2))
    return Classes(probabilities, jnp.sum(entr(probabilities), axis=1), expected_entropy)
