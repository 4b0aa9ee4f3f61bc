"""Quantiles of a regression's predictive mixture, by bisection on its cumulative distribution.

    Q(q) = min {z : F(z) ≥ q},      F = Σ_i w_i F_i

By Cantelli's inequality P(Y_i ≤ μ_i − k σ_i) ≤ 1/(1 + k²), so with k² = (1 − q)/q every component, and with them the
mixture, has F ≤ q at the smallest μ_i − k σ_i; likewise from above. The bracket therefore holds Q(q) for any
likelihood of finite variance. It is halved until its width is 2⁻⁸ of its own rounding: 31 times in float32, 60 in
float64. No randomness enters.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.predictive.components import Components
from weightscape.predictive.marginal import RegressionDensity
from weightscape.predictive.regression import component_moments

_EXTRA_HALVINGS = 8


class Quantiles(eqx.Module):
    """Q(q) for each of `levels`, as a function of a chunk's components.

    - `levels`: q, strictly between 0 and 1.
    """

    levels: Float[Array, " level"]

    def __call__(self, likelihood: RegressionDensity, components: Components) -> Float[Array, "point level target"]:
        solved = jax.lax.map(lambda level: _solve(likelihood, components, level), self.levels)
        return jnp.swapaxes(solved, 0, 1)


def cumulative(
    likelihood: RegressionDensity, components: Components, y: Float[Array, "point target"]
) -> Float[Array, "point target"]:
    """F(y) at each point, entry by entry."""
    return components.cumulative(likelihood, y)


def _solve(
    likelihood: RegressionDensity, components: Components, level: Float[Array, ""]
) -> Float[Array, "point target"]:
    def halve(_, bracket):
        lower, upper = bracket
        # Not (lower + upper) / 2, which could leave the bracket by rounding.
        middle = lower + (upper - lower) / 2
        above = components.cumulative(likelihood, middle) >= level
        return jnp.where(above, lower, middle), jnp.where(above, middle, upper)

    lower, upper = _bracket(likelihood, components, level)
    num_halvings = jnp.finfo(lower.dtype).nmant + _EXTRA_HALVINGS
    return jax.lax.fori_loop(0, num_halvings, halve, (lower, upper))[1]


def _bracket(
    likelihood: RegressionDensity, components: Components, level: Float[Array, ""]
) -> tuple[Float[Array, "point target"], Float[Array, "point target"]]:
    means, variances = component_moments(likelihood, components)
    stds, counts = jnp.sqrt(variances), (components.weights > 0)[:, None, None]
    # Half as wide again, so that rounding of F cannot push the root out.
    below, above = 1.5 * jnp.sqrt((1 - level) / level), 1.5 * jnp.sqrt(level / (1 - level))
    lower = jnp.min(jnp.where(counts, means - (below + 1) * stds, jnp.inf), axis=0)
    upper = jnp.max(jnp.where(counts, means + (above + 1) * stds, -jnp.inf), axis=0)
    return lower, upper
