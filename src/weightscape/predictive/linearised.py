"""Predictions of a Gaussian approximation without drawing weights: the network is linearised at its mean.

    f(x) ~ N(m, S),     m = f(x; μ),     S = J(x) Σ J(x)ᵀ,        p(y | x, D) ≈ ∫ p(y | f) N(f; m, S) df

A link says how the integral is taken. Curvatures that ignore the network's own, such as the generalised
Gauss–Newton matrix, belong to the linearised network: with them this predictive is often better than one over draws
of weights.

Reference: Immer, Korzepa and Bauer, Improving predictions of Bayesian neural nets via local linearization (2021).
"""

from collections.abc import Callable

from jaxtyping import ArrayLike

from weightscape.core.checks import InputError
from weightscape.core.choices import chosen
from weightscape.inference.gaussian import Gaussian
from weightscape.likelihoods import ClassificationLikelihood, Likelihood
from weightscape.likelihoods import Gaussian as GaussianNoise
from weightscape.predictive.function_gaussian import linearise
from weightscape.predictive.links import Exact, LaplaceBridge, Link, Probit
from weightscape.predictive.plan import DEFAULT_MEMORY
from weightscape.predictive.predictive import Predictive
from weightscape.predictive.units import Units

LINKS: dict[str, Callable[[], Link]] = {"bridge": LaplaceBridge, "exact": Exact, "probit": Probit}
"""The links that have a name; `FunctionSamples(key)` needs a key."""


def predict_linearised(
    approximation: Gaussian, x: ArrayLike | list, *, link: Link | str | None = None, memory: int = DEFAULT_MEMORY
) -> Predictive:
    """The predictive distribution of the linearised network at the inputs `x`.

    Arguments:
        approximation: N(μ, Σ) over positions, from any method.
        x: inputs in original units, shaped as in training.
        link: `Exact()` for Gaussian noise, `Probit()` or `LaplaceBridge()` for classes, `FunctionSamples(key)` for
            every likelihood; or "exact", "probit", "bridge". None is `Exact()` for the likelihood Gaussian and
            `Probit()` for classes.
        memory: bytes to spend on Jacobians, or on the functions of `FunctionSamples`.

    An inferred noise scale is taken at the mean of the approximation. Exact for networks that are linear in their
    weights, under `Exact()`. With all links but `FunctionSamples`, `sample` draws each point on its own.

    Example:
    >>> predictive = predict_linearised(approximation, data.test.x)     # doctest: +SKIP
    >>> predictive.mean, predictive.epistemic_std                       # doctest: +SKIP

    """
    network, inputs = linearise(approximation, x, memory=memory, caller="predict_linearised")
    integral = _chosen_link(link, network.model.likelihood)
    header = approximation.header
    return Predictive(integral.mixture(network, inputs, memory), Units(header.scaling, header.example.y))


def _chosen_link(link: Link | str | None, likelihood: Likelihood) -> Link:
    if link is None:
        return _default_link(likelihood)
    return chosen("`link` of predict_linearised", link, Link, LINKS)


def _default_link(likelihood: Likelihood) -> Link:
    if isinstance(likelihood, GaussianNoise):
        return Exact()
    if isinstance(likelihood, ClassificationLikelihood):
        return Probit()
    raise InputError(
        f"`link` of predict_linearised must be given for {type(likelihood).__name__}, got None. "
        "Pass `link=FunctionSamples(key)`."
    )
