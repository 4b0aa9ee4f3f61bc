"""Class probabilities of the predictive mixture, and the split of their entropy.

p̄ = Σ_i w_i p_i                                    probabilities are averaged, never logits
H[p̄] = Σ_i w_i H[p_i]  +  Σ_i w_i KL(p_i ‖ p̄)       H[p] = −Σ_c p_c log p_c, in nats
total   expected (aleatoric)  mutual information (epistemic)

A component that has the function integrated out gives its own expected entropy in the place of H[p_i], or none.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import entr
from jaxtyping import Array, Float

from weightscape.predictive.components import Components
from weightscape.predictive.marginal import ClassDensity, MarginalClassification


class Classes(NamedTuple):
    """p̄, H[p̄] and the expected entropy of single draws, None where it is not known."""

    probabilities: Float[Array, "point class"]
    entropy: Float[Array, " point"]
    expected_entropy: Float[Array, " point"] | None


def classes(likelihood: ClassDensity, components: Components) -> Classes:
    """Probabilities and entropies of the mixture at each point."""
    each = jax.vmap(likelihood.probabilities)(components.outputs)
    probabilities = components.average(each)
    return Classes(probabilities, jnp.sum(entr(probabilities), axis=1), _expected_entropy(likelihood, components, each))


def _expected_entropy(
    likelihood: ClassDensity, components: Components, each: Float[Array, "draw point class"]
) -> Float[Array, " point"] | None:
    if not isinstance(likelihood, MarginalClassification):
        return components.average(jnp.sum(entr(each), axis=2))
    within = jax.vmap(likelihood.expected_entropy)(components.outputs)
    return None if within is None else components.average(within)
