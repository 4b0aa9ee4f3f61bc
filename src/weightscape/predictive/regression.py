"""Mean and variance of a regression's predictive mixture, by the law of total variance.

    E[y] = Σ_i w_i μ_i
    Var[y] = Σ_i w_i σ_i²  +  Σ_i w_i (μ_i − E[y])²
             aleatoric        epistemic

μ_i and σ_i² are the mean and variance of y under draw i. Where a component has the function integrated out, the doubt
that it holds within is counted as epistemic. The sums are those of the mixture itself, without a
correction for the number of draws. The variance is taken in two passes, since E[μ²] − E[μ]² loses all digits where the
mean is large; the mean is taken around the first draw, so that its rounding is relative to the spread of the μ_i.
"""

from typing import NamedTuple

import jax
from jaxtyping import Array, Float

from weightscape.predictive.components import Components
from weightscape.predictive.marginal import MarginalRegression, RegressionDensity


class Moments(NamedTuple):
    """E[y] and the two parts of Var[y]."""

    mean: Float[Array, "point target"]
    aleatoric_variance: Float[Array, "point target"]
    epistemic_variance: Float[Array, "point target"]


def moments(likelihood: RegressionDensity, components: Components) -> Moments:
    """The moments of the mixture at each point."""
    means, variances = component_moments(likelihood, components)
    mean = means[0] + components.average(means - means[:1])
    between = components.average((means - mean[None]) ** 2)
    if not isinstance(likelihood, MarginalRegression):
        return Moments(mean, components.average(variances), between)
    aleatoric = jax.vmap(likelihood.aleatoric_variance)(components.outputs, components.own)
    within = jax.vmap(likelihood.epistemic_variance)(components.outputs, components.own)
    return Moments(mean, components.average(aleatoric), between + components.average(within))


def component_moments(
    likelihood: RegressionDensity, components: Components
) -> tuple[Float[Array, "draw point target"], Float[Array, "draw point target"]]:
    """μ_i and σ_i² of every draw."""
    means = jax.vmap(likelihood.mean)(components.outputs, components.own)
    return means, jax.vmap(likelihood.variance)(components.outputs, components.own)
