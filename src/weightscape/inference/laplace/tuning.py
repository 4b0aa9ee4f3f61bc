"""Prior scales and noise chosen by the evidence: empirical Bayes by Laplace's approximation.

    ψ* = argmax_ψ log p(D | ψ),      ψ: log-scales of the prior (one, or one a layer) and of the noise

After training, with the mode held (`rounds=1`), or during it: train, choose ψ, train on, and so on (`rounds` > 1).
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from weightscape.core import InputError, registered, tree
from weightscape.core.checks import require, require_count, require_known
from weightscape.core.layout import Layout
from weightscape.inference.laplace.information import Information
from weightscape.inference.laplace.marginal import LaplaceEvidence, one_noise
from weightscape.likelihoods import Gaussian, Likelihood
from weightscape.posterior import Posterior
from weightscape.priors import FanInNormal, Normal, Prior

_BOUND = 7.0
"""Scales may change by a factor of e^7 a round: beyond it a weight is pruned or free for all purposes."""


@registered("inference.EvidenceTuning")
class EvidenceTuning(eqx.Module):
    """What the evidence chooses.

    - `prior`: "global" for one factor on all scales of the prior, "by_layer" for one a layer, None for none.
    - `noise`: whether the fixed noise of a Gaussian likelihood is chosen too.
    - `rounds`: how often to train and choose; 1 chooses after training.
    """

    prior: str | None = eqx.field(static=True, default="global")
    noise: bool = eqx.field(static=True, default=False)
    rounds: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        require_count("`rounds` of EvidenceTuning", self.rounds)
        if self.prior is not None:
            require_known("`prior` of EvidenceTuning", self.prior, ("global", "by_layer"))
        some = self.prior is not None or self.noise
        require(some, "EvidenceTuning must choose something", "neither prior nor noise", "Name one.")


class Tuned(NamedTuple):
    """The posterior with the chosen scales, the information under its noise, and the factors by name."""

    posterior: Posterior
    information: Information
    log_evidence: float
    factors: dict[str, float]


def tune(evidence: LaplaceEvidence, tuning: EvidenceTuning) -> Tuned:
    """The scales of largest evidence, with the mode held."""
    model = evidence.around.posterior.model
    names, apply = _choices(evidence, tuning)

    @eqx.filter_jit
    def loss(evidence, log_factors):
        return -evidence(*apply(model.prior, model.likelihood, log_factors))

    value_and_gradient = lambda t: [
        np.asarray(part, np.float64) for part in eqx.filter_value_and_grad(lambda t: loss(evidence, t))(jnp.asarray(t))
    ]
    start = np.zeros(len(names), evidence.around.location.dtype)
    found = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", bounds=[(-_BOUND, _BOUND)] * len(names))
    finite = bool(np.isfinite(found.fun))
    require(finite, "The evidence must be finite where it is largest", found.fun, "Fix the prior's scale instead.")
    chosen = evidence.under(*apply(model.prior, model.likelihood, jnp.asarray(found.x, start.dtype)))
    factors = {name: float(np.exp(t)) for name, t in zip(names, found.x, strict=True)}
    return Tuned(chosen.around.posterior, chosen.information, -float(found.fun), factors)


Apply = Callable[[Prior, Likelihood, Float[Array, " choice"]], tuple[Prior, Likelihood]]


def _choices(evidence: LaplaceEvidence, tuning: EvidenceTuning) -> tuple[list[str], Apply]:
    """Names of the factors, and how they change prior and likelihood."""
    model, params = evidence.around.posterior.model, jax.eval_shape(evidence.around.parameters).network
    names, layer_of = _prior_choices(model.prior, params, tuning.prior)
    if tuning.noise:
        one_noise(model.likelihood)  # raises where there is none to tune

    def apply(prior: Prior, likelihood: Likelihood, log_factors: Array) -> tuple[Prior, Likelihood]:
        factors = jnp.exp(log_factors)
        if names:
            prior = _rescaled(prior, params, [factors[i] for i in layer_of])
        if tuning.noise:
            likelihood = Gaussian(one_noise(likelihood) * factors[len(names)])
        return prior, likelihood

    return [*names, *(["noise"] if tuning.noise else [])], apply


def _prior_choices(prior: Prior, params: tree.Tree, choice: str | None) -> tuple[list[str], list[int]]:
    """Names of the prior's factors, and for each leaf of the network which one it takes."""
    if choice is None:
        return [], []
    if not isinstance(prior, (Normal, FanInNormal)):
        came, remedy = type(prior).__name__, "Use Normal or FanInNormal, or tune the noise alone."
        raise InputError(f"A prior that is tuned must be a normal one, got {came}. {remedy}")
    paths = Layout.of(params).paths
    if choice == "global":
        return ["prior"], [0] * len(paths)
    parents = [path.rpartition("/")[0] or path for path in paths]
    layers = list(dict.fromkeys(parents))
    return [f"prior of {name}" for name in layers], [layers.index(name) for name in parents]


def _rescaled(prior: Prior, params: tree.Tree, factors: list[Array]) -> Prior:
    """The normal prior with the scale of each leaf multiplied."""
    assert isinstance(prior, (Normal, FanInNormal))
    leaves, structure = jax.tree.flatten(prior.scales(params))
    return Normal(jax.tree.unflatten(structure, [leaf * factor for leaf, factor in zip(leaves, factors, strict=True)]))
