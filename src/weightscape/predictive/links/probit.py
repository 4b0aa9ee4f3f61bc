"""The probit approximation: logits are drawn towards zero as far as they are uncertain.

    ∫ sigmoid(f) N(f; m, s²) df ≈ sigmoid(m / √(1 + π s² / 8))          `Bernoulli`
    ∫ softmax(f) N(f; m, S) df ≈ softmax(m / √(1 + π diag S / 8))        `Categorical`

The sigmoid is replaced by the normal distribution function of equal slope at zero, for which the integral is exact;
the error of the probability stays below 0.02. For more than two classes the same factor is used for each logit, and
covariances between logits are left out: a rule of thumb, and not invariant to a constant added to all logits.

References: MacKay, The evidence framework applied to classification networks (1992); Bishop, Pattern recognition and
machine learning (2006), equations 4.153 and 4.154; for more than two classes Gibbs, Bayesian Gaussian processes for
regression and classification (1997).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.likelihoods import ClassificationLikelihood
from weightscape.predictive.function_gaussian import FunctionGaussian, function_at
from weightscape.predictive.linear_network import LinearNetwork
from weightscape.predictive.links.link import Link, class_likelihood, one_component
from weightscape.predictive.marginal import MarginalClassification
from weightscape.predictive.mixture import Mixture


class Probit(Link):
    """Class probabilities from moderated logits; they have no expected entropy."""

    def mixture(self, network: LinearNetwork, x: Float[np.ndarray, "point ..."], memory: int) -> Mixture:
        likelihood = class_likelihood(network.model.likelihood, "Probit")
        function = function_at(network, x, memory)
        return one_component(ModeratedClasses(likelihood), moderated(function), function.own)


class ModeratedClasses(MarginalClassification):
    """`likelihood` at moderated logits: one distribution over classes, not many that disagree."""

    likelihood: ClassificationLikelihood

    def expected_entropy(self, outputs: Float[Array, "point output"]) -> None:
        return None


@jax.jit
def moderated(function: FunctionGaussian) -> Float[Array, "point output"]:
    """m / √(1 + π diag S / 8)."""
    return function.mean / jnp.sqrt(1 + np.pi / 8 * function.variance)
