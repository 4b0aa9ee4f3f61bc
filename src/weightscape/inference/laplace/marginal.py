"""Laplace's value of the evidence, as a function of the prior and the noise.

    log p(D) ≈ log p(D, μ) + (k/2) log 2π − ½ log |H + P|

exact for linear-Gaussian models. Prior and likelihood are trees of numbers, so `jax.grad` gives the gradient in each
of their scales. Of some weights only, it is the evidence of a model in which the others are known:
log p(D, μ) counts the prior of the k weights alone.

References: MacKay (1992), A practical Bayesian framework for backpropagation networks; Immer et al. (2021).
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core import InputError, Scalar
from weightscape.inference.laplace.curvature import Curvature, as_curvature
from weightscape.inference.laplace.information import Information, Precision
from weightscape.inference.laplace.neighbourhood import Neighbourhood
from weightscape.inference.laplace.prior_precision import diagonal_precision
from weightscape.inference.laplace.structures import Structure, as_structure
from weightscape.likelihoods import Gaussian, Likelihood
from weightscape.posterior import Model, Position, Posterior
from weightscape.priors import Prior

_LOG_2PI = float(np.log(2 * np.pi))


class LaplaceEvidence(eqx.Module):
    """log p(D) under other priors and other noise, with the mode and its information held.

    - `around`, `information`, `curvature`: the mode, H there, and which matrix H is.

    Example:
    >>> evidence = LaplaceEvidence.at(posterior, position)              # doctest: +SKIP
    >>> jax.grad(evidence)(ws.priors.Normal(1.0)).scale                 # doctest: +SKIP
    """

    around: Neighbourhood
    information: Information
    curvature: Curvature

    @staticmethod
    def at(
        posterior: Posterior,
        position: Position,
        *,
        curvature: Curvature | str = "gauss_newton",
        structure: Structure | str = "full",
    ) -> "LaplaceEvidence":
        """The evidence around a position, which should be a mode."""
        around, curvature = Neighbourhood.of(posterior, position), as_curvature(curvature)
        chosen = as_structure(structure)
        assert chosen is not None
        return LaplaceEvidence(around, chosen.fit(curvature, around).information, curvature)

    @eqx.filter_jit
    def __call__(self, prior: Prior, likelihood: Likelihood | None = None) -> Scalar:
        """log p(D) under `prior`, which must treat each weight alone, and `likelihood`, which may have other noise."""
        return self.under(prior, likelihood).value()

    def value(self) -> Scalar:
        """log p(D) under the posterior's own prior, which must treat each weight alone."""
        return log_evidence(self.around, self.information, diagonal_precision(self.around))

    def under(self, prior: Prior, likelihood: Likelihood | None = None) -> "LaplaceEvidence":
        """The same mode under another prior and another noise."""
        model = self.around.posterior.model
        changed = Model(model.network, model.likelihood if likelihood is None else likelihood, prior)
        around = dataclasses.replace(self.around, posterior=dataclasses.replace(self.around.posterior, model=changed))
        if likelihood is None or likelihood is model.likelihood:
            return dataclasses.replace(self, around=around)
        factor = _noise_ratio(model.likelihood, likelihood) ** self.curvature.noise_power
        return dataclasses.replace(self, around=around, information=self.information.scaled(factor))


def log_evidence(around: Neighbourhood, information: Information, prior: Precision) -> Scalar:
    """log p(D, μ) + (k/2) log 2π − ½ log |H + P|."""
    log_volume = around.num_free * _LOG_2PI - information.log_determinant(prior)
    return _log_joint(around, prior) + 0.5 * log_volume


def is_centred_normal(around: Neighbourhood, prior: Precision) -> bool:
    """Whether the prior of the weights that move is N(0, P⁻¹), as far as its gradient at the mode shows."""
    gradient, centre = np.asarray(_prior_gradient(around)), np.asarray(around.centre())
    pull = np.asarray(prior) * centre if prior.ndim == 1 else np.asarray(prior) @ centre
    return bool(np.all(np.abs(gradient + pull) <= 1e-3 * (1e-6 + np.max(np.abs(pull), initial=0))))


@eqx.filter_jit
def _prior_gradient(around: Neighbourhood) -> Float[Array, " free"]:
    return jax.grad(around.log_prior)(around.centre())


def _log_joint(around: Neighbourhood, prior: Precision) -> Scalar:
    if around.free is None:
        return around.log_density(around.centre())
    posterior, position = around.posterior, around.position(around.centre())
    log_likelihood = posterior.likelihood_power * posterior.log_likelihood(position)
    return log_likelihood + _log_normal(around.centre(), prior)


def _log_normal(v: Float[Array, " free"], precision: Precision) -> Scalar:
    """log N(v; 0, P⁻¹)."""
    if precision.ndim == 2:
        return 0.5 * (jnp.linalg.slogdet(precision)[1] - v @ precision @ v - len(v) * _LOG_2PI)
    return 0.5 * jnp.sum(jnp.log(precision) - precision * v**2 - _LOG_2PI)


def _noise_ratio(old: Likelihood, new: Likelihood) -> Array:
    """σ_old / σ_new of Gaussian likelihoods with one fixed noise; others must not differ."""
    return one_noise(old) / one_noise(new)


def one_noise(likelihood: Likelihood) -> Array:
    """σ of a Gaussian likelihood with one fixed noise, or an error."""
    if isinstance(likelihood, Gaussian) and not isinstance(likelihood.scale, Prior) and likelihood.scale.ndim == 0:
        return likelihood.scale
    raise InputError(
        f"Noise that changes must be the one fixed number of a Gaussian, got {type(likelihood).__name__} with another. "
        "An inferred noise is approximated along with the weights already."
    )
