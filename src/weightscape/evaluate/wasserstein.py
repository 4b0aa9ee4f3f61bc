"""Wasserstein distances between two predictives of a regression, point by point.

    W_p(F, G)^p = ∫₀¹ |F⁻¹(u) − G⁻¹(u)|^p du,     p = 1, 2

In the units of y: how far, on average or in root mean square, the mass of one must be moved to become the other. For
normals W_2² = (m_1 − m_2)² + (s_1 − s_2)². W_1 ≤ W_2. Entries of vector targets are compared one by one.

The quadrature: each mixture's range, ten standard deviations beyond its components, is cut into panels, and round by
round those are halved where width times rise of F is largest, which finds narrow components wherever they lie. Both
cumulative distributions are evaluated on the 418 edges of both and taken as straight between them; of the
distributions with these densities, constant on panels, the distances are exact. Equal predictives are at distance 0.
Measured on normals and mixtures, distances are right within 0.4 % of themselves down to 1e-3 of the spread.
Of noise with heavy tails the part beyond ten standard deviations is left out.

Cost: 1254 evaluations of F or G, each of all draws, for each point.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.checks import require, shape_of
from weightscape.predictive import Components, Predictive, RegressionDensity, component_moments

_REACH = 10.0
_FIRST_PANELS = 16
_ROUNDS = 12
_HALVED = 16


class Wasserstein(NamedTuple):
    """W_1 and W_2 in original units: averaged over points, or for each point."""

    w1: float | Float[np.ndarray, "point ..."]
    w2: float | Float[np.ndarray, "point ..."]


def wasserstein(p: Predictive, q: Predictive) -> Wasserstein:
    """Both distances, averaged over points and over the entries of vector targets; W_2 after its root is taken.

    Example:
    >>> w1, w2 = wasserstein(predict(draws, x), predict(reference, x))      # doctest: +SKIP
    """
    w1, w2 = pointwise_wasserstein(p, q)
    return Wasserstein(float(np.mean(w1)), float(np.mean(w2)))


def pointwise_wasserstein(p: Predictive, q: Predictive) -> Wasserstein:
    """Both distances at each point, shaped like the targets."""
    _check(p, q)
    edges = np.sort(np.concatenate([_edges(p), _edges(q)], axis=1), axis=1)
    rows = [np.moveaxis(array, 1, -1) for array in (edges, _heights(p, edges), _heights(q, edges))]
    shape = rows[0].shape[:-1]
    flat = [array.reshape(-1, array.shape[-1]).astype(np.float64) for array in rows]
    distances = np.asarray([straight_distances(*row) for row in zip(*flat, strict=True)])
    return Wasserstein(distances[:, 0].reshape(shape), distances[:, 1].reshape(shape))


def straight_distances(
    edges: Float[np.ndarray, " edge"], first: Float[np.ndarray, " edge"], second: Float[np.ndarray, " edge"]
) -> tuple[float, float]:
    """W_1 and W_2 of two distributions with these heights at the edges, straight between them."""
    first, second = _whole(first), _whole(second)
    levels = np.sort(np.concatenate([first, second]))
    widths = np.diff(levels)
    # Both quantiles are straight between two levels, but may jump at them: two values inside give the ends.
    gap = lambda u: np.interp(u, first, edges) - np.interp(u, second, edges)
    early, late = (gap(levels[:-1] + share * widths) for share in (0.25, 0.75))
    middle, left, right = (early + late) / 2, (3 * early - late) / 2, (3 * late - early) / 2
    crossing = (left**2 + right**2) / np.maximum(2 * (np.abs(left) + np.abs(right)), np.finfo(float).tiny)
    w1 = widths @ np.where(left * right >= 0, np.abs(middle), crossing)
    return float(w1), float(np.sqrt(widths @ (left**2 + left * right + right**2) / 3))


def _check(p: Predictive, q: Predictive) -> None:
    for predictive in (p, q):
        predictive.require_task("regression", "wasserstein", "Use `total_variation`.")
    first, second = ((one.num_points, *shape_of(one.units.example_y)[1:]) for one in (p, q))
    remedy = "Predict both at the same inputs."
    require(first == second, "Predictions that are compared must have the same shape", f"{first} and {second}", remedy)


def _edges(predictive: Predictive) -> Float[np.ndarray, "point edge ..."]:
    """The edges of the refined panels in original units."""
    return np.asarray(predictive.units.values(predictive.mixture.summarise(_refined)))


def _heights(predictive: Predictive, edges: Float[np.ndarray, "point edge ..."]) -> Float[np.ndarray, "point edge ..."]:
    """F at edges in original units."""
    scaled = predictive.units.to_network(jnp.asarray(edges))
    columns = scaled[..., None] if predictive.units.example_y.ndim == 1 else scaled
    return np.asarray(predictive.units.without_columns(predictive.mixture.summarise(_cumulative, columns)))


def _cumulative(
    likelihood: RegressionDensity, components: Components, edges: Float[Array, "point edge target"]
) -> Float[Array, "point edge target"]:
    return jnp.swapaxes(_evaluate(likelihood, components, jnp.swapaxes(edges, 0, 1)), 0, 1)


def _evaluate(
    likelihood: RegressionDensity, components: Components, edges: Float[Array, "edge point target"]
) -> Float[Array, "edge point target"]:
    return jax.lax.map(lambda one: components.cumulative(likelihood, one), edges)


def _refined(likelihood: RegressionDensity, components: Components) -> Float[Array, "point edge target"]:
    """Sorted edges from the lowest component to the highest.

    Copies of the last edge, between which panels are empty, hold the places of edges to come.
    """
    with_places = lambda values: jnp.concatenate([values, jnp.repeat(values[-1:], _ROUNDS * _HALVED, axis=0)])

    def halve_worst(_, panels):
        edges, heights = panels
        rise = (edges[1:] - edges[:-1]) * (heights[1:] - heights[:-1])
        worst = jnp.moveaxis(jax.lax.top_k(jnp.moveaxis(rise, 0, -1), _HALVED)[1], -1, 0)
        middles = jnp.take_along_axis((edges[1:] + edges[:-1]) / 2, worst, axis=0)
        return _placed(edges, middles), _placed(heights, _evaluate(likelihood, components, middles))

    edges = _first_edges(likelihood, components)
    panels = with_places(edges), with_places(_evaluate(likelihood, components, edges))
    return jnp.swapaxes(jax.lax.fori_loop(0, _ROUNDS, halve_worst, panels)[0], 0, 1)


def _first_edges(likelihood: RegressionDensity, components: Components) -> Float[Array, "edge point target"]:
    means, variances = component_moments(likelihood, components)
    reach, counts = _REACH * jnp.sqrt(variances), (components.weights > 0)[:, None, None]
    lowest = jnp.min(jnp.where(counts, means - reach, jnp.inf), axis=0)
    highest = jnp.max(jnp.where(counts, means + reach, -jnp.inf), axis=0)
    return jnp.linspace(lowest, highest, _FIRST_PANELS + 1)


def _placed(
    values: Float[Array, "edge point target"], new: Float[Array, "more point target"]
) -> Float[Array, "edge point target"]:
    """`new` in the place of the last copies, in order; edges and heights agree, since F is monotone."""
    return jnp.sort(jnp.concatenate([values[: -len(new)], new]), axis=0)


def _whole(heights: Float[np.ndarray, " edge"]) -> Float[np.ndarray, " edge"]:
    """From exactly 0 to exactly 1 and never falling, which rounding alone prevents."""
    rising = np.maximum.accumulate(heights)
    return (rising - rising[0]) / (rising[-1] - rising[0])
