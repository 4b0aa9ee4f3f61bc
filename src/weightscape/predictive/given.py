"""Predictions that another program made, as a Predictive: so that every score and picture serves them too.

    P(y = c | x) = p_c              `given_classes`, one row of probabilities for each point
    y ~ N(m, s² + σ²)               `given_normals`, with doubt s about the mean and noise σ

Nothing is known of what lies behind the probabilities, so their entropy cannot be split: `expected_entropy` and
`mutual_information` raise.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from weightscape.core.checks import require, require_finite, require_positive, shape_of
from weightscape.data import Scaling
from weightscape.likelihoods import NO_OWN, Categorical, Gaussian
from weightscape.predictive.links.exact import SmearedGaussian
from weightscape.predictive.links.link import one_component
from weightscape.predictive.links.probit import ModeratedClasses
from weightscape.predictive.predictive import Predictive
from weightscape.predictive.units import Units

_SUM_TOLERANCE = 1e-3


def given_classes(probabilities: Float[np.ndarray, "point class"]) -> Predictive:
    """Class probabilities as a Predictive; rows must sum to one.

    Example:
    >>> float(given_classes(np.array([[0.25, 0.75]])).probabilities[0, 1])
    0.75
    """
    require_finite("Given probabilities", probabilities)
    remedy = "Pass probabilities, one row for each point."
    require(bool(np.all(probabilities >= 0)), "Given probabilities must not be negative", probabilities.min(), remedy)
    worst = float(np.max(np.abs(probabilities.sum(axis=1) - 1)))
    require(worst < _SUM_TOLERANCE, "Given probabilities of a point must sum to 1", f"one off by {worst:.3g}", remedy)
    with np.errstate(divide="ignore"):  # what is impossible has the logarithm −∞
        logits = jnp.asarray(np.log(probabilities), jnp.result_type(float))
    density = ModeratedClasses(Categorical(num_classes=probabilities.shape[1]))
    return Predictive(one_component(density, logits, NO_OWN), Units(None, jnp.zeros(1, jnp.int32)))


def given_normals(
    mean: Float[np.ndarray, " point"],
    epistemic_std: Float[np.ndarray, " point"],
    noise: float,
    *,
    scaling: Scaling | None = None,
) -> Predictive:
    """Normal predictions as a Predictive.

    - `mean`, `epistemic_std`, `noise`: m, s and σ, in the units that `scaling` leads to, or original ones without.
    """
    require_positive("`noise` of given_normals", noise)
    same, remedy = shape_of(mean) == shape_of(epistemic_std), "Pass one number for each point."
    came = f"{shape_of(mean)} and {shape_of(epistemic_std)}"
    require(same, "`mean` and `epistemic_std` of given_normals must have the same shape", came, remedy)
    require_finite("`mean` of given_normals", mean)
    require_finite("`epistemic_std` of given_normals", epistemic_std)
    columns = np.stack([mean, epistemic_std**2, np.sqrt(epistemic_std**2 + noise**2)], axis=1)
    outputs = jnp.asarray(columns, jnp.result_type(float))
    density = SmearedGaussian(Gaussian(scale=noise))
    return Predictive(one_component(density, outputs, NO_OWN), Units(scaling, jnp.zeros(1, outputs.dtype)))
