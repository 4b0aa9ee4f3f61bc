"""From data and settings to draws of weights: what `fit` of an estimator does.

p(θ | X, y) ∝ p(y | f(X; θ)) p(θ),      θ the weights of a perceptron
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from weightscape.core import PRNGKey, Silent
from weightscape.core.choices import chosen
from weightscape.data import Batch, Scaling
from weightscape.draws import Draws
from weightscape.flow import FlowAfter
from weightscape.inference import METHODS, Approximation, Method, as_draws
from weightscape.posterior import Model, Posterior

KNOWN: dict[str, Callable[[], Method]] = {**METHODS, "flow": FlowAfter}
"""Methods by name, as on the command line."""


class Fit(NamedTuple):
    """What a fit leaves behind.

    - `posterior`: the target, with its data.
    - `approximation`: the density that the method ended in, or None where it ended in draws.
    - `draws`: weights; where there is a density, draws from it.
    """

    posterior: Posterior
    approximation: Approximation | None
    draws: Draws


def infer(key: PRNGKey, model: Model, batch: Batch, method: Method | str, *, verbose: bool) -> Fit:
    """Run a method, or the one of that name, on the posterior of `model` given `batch`."""
    method = chosen("`method`", method, Method, KNOWN)
    key_run, key_draws = jax.random.split(key)
    posterior = model.condition(batch)
    result = method.run(key_run, posterior, progress=None if verbose else Silent())
    density = result if isinstance(result, Approximation) else None
    return Fit(posterior, density, as_draws(key_draws, result))


def key_of(random_state: np.random.RandomState) -> PRNGKey:
    """The next key from scikit-learn's source of randomness."""
    return jax.random.key(random_state.randint(2**31 - 1))


def fitted_scaling(x: np.ndarray, y: np.ndarray, task: str) -> Scaling:
    """The scaling that standardises X, and y of a regression; what is constant gets scale 1, targets too."""
    inputs = Scaling.fit(x, y, "classification")
    if task == "classification":
        return inputs
    # As inputs, targets may be constant: a fold of a cross-validation is not refused for that.
    targets = Scaling.fit(y.reshape(len(y), -1), y, "classification")
    shape = y.shape[1:]
    return Scaling(inputs.x_mean, inputs.x_scale, targets.x_mean.reshape(shape), targets.x_scale.reshape(shape))
