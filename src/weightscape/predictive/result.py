"""Predictions of whatever a method returned, in the way that suits it.

A Laplace approximation with Gauss–Newton or Fisher curvature is the posterior of the network linearised around the
mode. Draws from it, put through the network itself, underfit (Immer, Korzepa & Bauer 2021, Improving predictions of
Bayesian neural nets via local linearization), so its predictions are those of the linearised network. Everything else
predicts by draws.
"""

from typing import Any

from jaxtyping import ArrayLike

from weightscape.core.types import PRNGKey
from weightscape.draws import Draws
from weightscape.inference import LINEARISED, Approximation
from weightscape.inference.as_draws import NUM_DRAWS, as_draws
from weightscape.likelihoods import Gaussian
from weightscape.predictive.linearised import predict_linearised
from weightscape.predictive.links import FunctionSamples
from weightscape.predictive.predict import predict
from weightscape.predictive.predictive import Predictive


def predict_result(
    key: PRNGKey, result: Draws | Approximation, x: ArrayLike | list, *, num_draws: int = NUM_DRAWS
) -> Predictive:
    """The predictive distribution at `x`; a density gives `num_draws` draws, of networks or of functions.

    Example:
    >>> predictive = predict_result(key, method.run(key, posterior), data.test.x)            # doctest: +SKIP
    """
    if isinstance(result, Draws) or not result.facts.get(LINEARISED, False):
        return predict(as_draws(key, result, num_draws), x)
    gaussian: Any = result
    closed = isinstance(gaussian.header.model.likelihood, Gaussian)
    return predict_linearised(gaussian, x, link=None if closed else FunctionSamples(key, num_draws))
