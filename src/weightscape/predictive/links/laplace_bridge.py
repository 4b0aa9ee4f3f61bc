"""The Laplace bridge: a Dirichlet over class probabilities in the place of a Gaussian over logits.

    f ~ N(m, S),    μ = P m,    Σ = P S P,    P = I − 1 1ᵀ / K
    α_k = (1 − 2/K + (e^{μ_k} / K²) Σ_l e^{−μ_l}) / Σ_kk
    p_k = α_k / α_0,    E[H] = ψ(α_0 + 1) − Σ_k p_k ψ(α_k + 1),    α_0 = Σ_k α_k

Softmax does not see what all logits share, so the bridge is built on the logits less their mean, whose law is
N(μ, Σ). The paper conditions on Σ_k f_k = 0 instead, which depends on a constant added to all logits; both agree
where S has equal row sums.

α is recovered exactly from the Gaussian that Laplace's method, in logits, puts on a Dirichlet. Other Gaussians are
served badly, since only diag Σ enters and the class of smallest variance is taken for the most probable: for standard
normal m and S = I the probabilities of ten classes are off by 0.23 in total variation, those of `Probit` by 0.012,
and of two classes they are softmax(m) whatever S is. Use it for a quick split of the entropy, `FunctionSamples` for a
true one.

Reference: Hobbhahn, Kristiadi and Hennig, Fast predictive uncertainty for classification with Bayesian deep networks
(2022).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import digamma, logsumexp
from jaxtyping import Array, Float

from weightscape.core.checks import require
from weightscape.likelihoods import NO_OWN, Bernoulli, Categorical, ClassificationLikelihood, Likelihood
from weightscape.predictive.function_gaussian import FunctionGaussian, function_at
from weightscape.predictive.linear_network import LinearNetwork
from weightscape.predictive.links.link import Link, class_likelihood, one_component
from weightscape.predictive.marginal import MarginalClassification
from weightscape.predictive.mixture import Mixture

_LARGE = 30.0
"""Above e^30 digamma(α + 1) is log α, to 1/(2α) < 1e-13; the number itself may be too large for its type."""


class LaplaceBridge(Link):
    """Class probabilities with a Dirichlet law, which tells doubt about the function from doubt about the class."""

    def mixture(self, network: LinearNetwork, x: Float[np.ndarray, "point ..."], memory: int) -> Mixture:
        likelihood = class_likelihood(network.model.likelihood, "LaplaceBridge")
        mean, variance = _centred(likelihood, function_at(network, x, memory))
        lowest = float(np.min(variance))
        remedy = "These logits have no spread to bridge: use `Probit()` or `FunctionSamples(key)`."
        require(lowest > 0, "The logits' variance must be positive for LaplaceBridge", f"{lowest:.3g}", remedy)
        density = DirichletClasses(Categorical(likelihood.num_classes))
        return one_component(density, log_concentrations(mean, variance), NO_OWN)


class DirichletClasses(MarginalClassification):
    """y ~ p with p ~ Dirichlet(α); its outputs are log α, whose softmax is α / α_0."""

    likelihood: ClassificationLikelihood

    def expected_entropy(self, outputs: Float[Array, "point class"]) -> Float[Array, " point"]:
        within = jnp.sum(self.probabilities(outputs) * _digamma_of_next(outputs), axis=1)
        return _digamma_of_next(logsumexp(outputs, axis=1)) - within


@jax.jit
def log_concentrations(
    mean: Float[Array, "point class"], variance: Float[Array, "point class"]
) -> Float[Array, "point class"]:
    """log α from μ and diag Σ of centred logits; in logs, since e^{μ_k − μ_l} may overflow."""
    num_classes = mean.shape[1]
    constant = np.log1p(-2 / num_classes) if num_classes > 2 else -np.inf
    grown = mean + logsumexp(-mean, axis=1, keepdims=True) - 2 * np.log(num_classes)
    return jnp.logaddexp(jnp.asarray(constant, mean.dtype), grown) - jnp.log(variance)


@eqx.filter_jit
def _centred(
    likelihood: Likelihood, function: FunctionGaussian
) -> tuple[Float[Array, "point class"], Float[Array, "point class"]]:
    """μ and diag Σ of the logits less their mean; the logit f of two classes stands for (−f/2, f/2)."""
    mean, covariance = function.mean, function.covariance
    if isinstance(likelihood, Bernoulli):
        variance = function.variance / 4
        return jnp.concatenate([-mean, mean], axis=1) / 2, jnp.concatenate([variance, variance], axis=1)
    rows = covariance - jnp.mean(covariance, axis=1, keepdims=True)
    both = rows - jnp.mean(rows, axis=2, keepdims=True)
    return mean - jnp.mean(mean, axis=1, keepdims=True), jnp.diagonal(both, axis1=1, axis2=2)


def _digamma_of_next(log_alpha: Float[Array, "..."]) -> Float[Array, "..."]:
    """ψ(α + 1) from log α."""
    return jnp.where(log_alpha > _LARGE, log_alpha, digamma(jnp.exp(jnp.minimum(log_alpha, _LARGE)) + 1))
