"""The continuous ranked probability score: how far the predictive distribution is from what came.

    CRPS(F, y) = ∫ (F(z) − 1{z ≥ y})² dz

In the units of y, smaller is better; for a single number it is the absolute error. The integral is taken from the
mixture's cumulative distribution, so it serves every regression likelihood and no randomness enters.

The range is cut into panels with an edge at y. F is monotone, so a panel's share of the error is at most its width
times the rise of F in it; round by round the panels where this is largest are halved. That finds narrow components
wherever they lie. Each panel is then integrated by the Gauss–Lobatto rule with four nodes, whose outer two are the
edges. Beyond ten standard deviations of every component the integrand is left out: nothing for Gaussian noise, and
by Cantelli's inequality at most 1/3000 of the largest standard deviation on each side for any.

Cost: 337 evaluations of F, each of all draws, for each target.

Reference: Gneiting and Raftery, Strictly proper scoring rules, prediction, and estimation (2007), equation 20.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from weightscape.predictive import Components, Predictive, RegressionDensity, component_moments

_REACH = 10.0
_SIDE_PANELS = 8
_ROUNDS = 12
_HALVED = 8
# Gauss–Lobatto on (−1, 1): nodes ±1 and ±1/√5 with weights 1/6 and 5/6.
_INNER_NODE = 1 / np.sqrt(5)
_OUTER_WEIGHT, _INNER_WEIGHT = 1 / 6, 5 / 6


def crps(predictive: Predictive, y: ArrayLike | list) -> float:
    """The mean score over points, and over the entries of vector targets, in original units."""
    return float(np.mean(np.asarray(pointwise_crps(predictive, y)), dtype=np.float64))


def pointwise_crps(predictive: Predictive, y: ArrayLike | list) -> Float[Array, "point ..."]:
    """The score of each target, in original units."""
    predictive.require_task("regression", "crps", "Use `brier`.")
    columns = predictive.units.to_network_columns(predictive.check_targets(y))
    return predictive.units.spreads(predictive.mixture.summarise(_integrate, columns))


def _integrate(
    likelihood: RegressionDensity, components: Components, y: Float[Array, "point target"]
) -> Float[Array, "point target"]:
    """∫ (F − 1{z ≥ y})² dz over the refined panels."""
    edges, heights = _panels(likelihood, components, y)
    middles, halves = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    right = (middles >= y[None]).astype(y.dtype)
    outer = (heights[1:] - right) ** 2 + (heights[:-1] - right) ** 2

    def inner(middle, half, right):
        at = lambda z: (components.cumulative(likelihood, z) - right) ** 2
        return at(middle - _INNER_NODE * half) + at(middle + _INNER_NODE * half)

    inside = jax.lax.map(lambda panel: inner(*panel), (middles, halves, right))
    return jnp.sum(halves * (_OUTER_WEIGHT * outer + _INNER_WEIGHT * inside), axis=0)


def _panels(
    likelihood: RegressionDensity, components: Components, y: Float[Array, "point target"]
) -> tuple[Float[Array, "edge point target"], Float[Array, "edge point target"]]:
    """Sorted edges, and F at each of them.

    Copies of the last edge, between which panels are empty, hold the places of edges to come.
    """
    evaluate = lambda z: jax.lax.map(lambda one: components.cumulative(likelihood, one), z)
    with_places = lambda values: jnp.concatenate([values, jnp.repeat(values[-1:], _ROUNDS * _HALVED, axis=0)])

    def halve_worst(_, panels):
        edges, heights = panels
        rise = (edges[1:] - edges[:-1]) * (heights[1:] - heights[:-1])
        worst = jnp.moveaxis(jax.lax.top_k(jnp.moveaxis(rise, 0, -1), _HALVED)[1], -1, 0)
        middles = jnp.take_along_axis((edges[1:] + edges[:-1]) / 2, worst, axis=0)
        return _placed(edges, middles), _placed(heights, evaluate(middles))

    edges = _first_edges(likelihood, components, y)
    return jax.lax.fori_loop(0, _ROUNDS, halve_worst, (with_places(edges), with_places(evaluate(edges))))


def _first_edges(
    likelihood: RegressionDensity, components: Components, y: Float[Array, "point target"]
) -> Float[Array, "edge point target"]:
    """Evenly spaced edges from the lowest component to y, and from y to the highest."""
    means, variances = component_moments(likelihood, components)
    reach, counts = _REACH * jnp.sqrt(variances), (components.weights > 0)[:, None, None]
    lowest = jnp.minimum(jnp.min(jnp.where(counts, means - reach, jnp.inf), axis=0), y)
    highest = jnp.maximum(jnp.max(jnp.where(counts, means + reach, -jnp.inf), axis=0), y)
    below = jnp.linspace(lowest, y, _SIDE_PANELS + 1)
    return jnp.concatenate([below, jnp.linspace(y, highest, _SIDE_PANELS + 1)[1:]])


def _placed(
    values: Float[Array, "edge point target"], new: Float[Array, "more point target"]
) -> Float[Array, "edge point target"]:
    """`new` in the place of the last copies, in order; edges and heights agree, since F is monotone."""
    return jnp.sort(jnp.concatenate([values[: -len(new)], new]), axis=0)
