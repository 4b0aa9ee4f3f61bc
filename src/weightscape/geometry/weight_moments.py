"""The mean and the variance of every weight over draws, in one pass that fits in memory.

    θ̄ = Σ_i w_i θ_i,       s² = Σ_i w_i (θ_i − θ̄)² / (1 − Σ_i w_i²),       Σ_i w_i = 1

w_i are the importance weights of the draws, or 1/n; then s² is the usual unbiased variance. Draws are read stretch by
stretch and joined by the update of Chan, Golub & LeVeque (1983), in double precision on the host, so that draws on disk
may be larger than memory.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from weightscape.core.checks import require, require_type
from weightscape.core.layout import Layout
from weightscape.draws import Draws, Header, draw_weights
from weightscape.geometry.moved_draws import MovedDraws, Source, as_they_are
from weightscape.inference import Gaussian
from weightscape.posterior import Position

_STRETCH_BYTES = 256 * 2**20
_CONSTANT = 1e-12
"""A weight that varies by less, relative to its mean, is constant up to the rounding of these sums."""


class Moments(NamedTuple):
    """Mean and variance of each coordinate of a position, as flat vectors in the order of `layout`.

    - `effective_sample_size`: 1 / Σ_i w_i², the number of draws where all weigh the same; infinite for a density.
    """

    mean: Float[np.ndarray, " weight"]
    variance: Float[np.ndarray, " weight"]
    effective_sample_size: float
    layout: Layout

    @property
    def standard_deviation(self) -> Float[np.ndarray, " weight"]:
        """s."""
        return np.sqrt(self.variance)

    @property
    def total_variance(self) -> float:
        """Σ_j s_j²: the mean squared distance of a draw from the mean."""
        return float(self.variance.sum())

    @property
    def is_constant(self) -> Bool[np.ndarray, " weight"]:
        """Which weights do not vary, up to rounding."""
        return self.standard_deviation <= _CONSTANT * np.abs(self.mean)

    @property
    def is_weight(self) -> Bool[np.ndarray, " weight"]:
        """Which coordinates are weights of the network, not scales of the noise or of the prior."""
        whose = [path.partition("/")[0] == "network" for path in self.layout.paths]
        return np.repeat(np.array(whose, bool), self.layout.sizes)

    def by_leaf(self, vector: Float[np.ndarray, " weight"]) -> dict[str, np.ndarray]:
        """The parts of a flat vector by the path of their leaf, each in the leaf's shape."""
        named = zip(self.layout.paths, self.layout.shapes, strict=True)
        return {path: vector[self.layout.places(path)].reshape(shape) for path, shape in named}


def moments(of: Source | Gaussian) -> Moments:
    """Mean and variance of each weight: over draws, or of a Gaussian.

    Example:
    >>> spread = moments(rebase(draws)).standard_deviation      # doctest: +SKIP
    """
    if isinstance(of, Gaussian):
        mean, variance = (np.asarray(part, np.float64) for part in (of.location, of.covariance.diagonal()))
        return Moments(mean, variance, float("inf"), of.layout)
    remedy = "Pass what `method.run` or `rebase` returns, or a Gaussian."
    known = isinstance(of, (Draws, MovedDraws))
    require_type(known, "Moments must be those of Draws or of a Gaussian", type(of).__name__, remedy)
    weights, draws = draw_weights(as_they_are(of)), as_they_are(of)
    left = float(1 - np.sum(weights**2))
    asked = "Draws must have at least two that weigh something, or they have no variance"
    require(len(draws) > 1 and left > _CONSTANT, asked, f"{len(draws)} draws", "Draw more, or pass more networks.")
    mean, squares = _sums(of, weights)
    return Moments(mean, squares / left, float(1 / np.sum(weights**2)), header_of(draws).layout())


def mean_position(of: Source) -> Position:
    """θ̄ as a position; of a single draw its own."""
    layout = header_of(as_they_are(of)).layout()
    return layout.unflatten(jnp.asarray(_sums(of, draw_weights(as_they_are(of)))[0], layout.dtype))


def chain_means(draws: Draws) -> Float[np.ndarray, "chain weight"]:
    """The mean of each chain, all draws of it weighing the same."""
    even = np.full((1, draws.num_draws), 1 / draws.num_draws)
    return np.stack([_sums(draws[chain], even)[0] for chain in range(draws.num_chains)])


def chosen_positions(draws: Draws, places: Int[np.ndarray, " place"]) -> Float[np.ndarray, "chain draw place"]:
    """Some coordinates of all draws, by their places in the flat vector."""
    even = np.ones((draws.num_chains, draws.num_draws))
    parts = [rows[:, places].reshape(draws.num_chains, -1, len(places)) for rows, _ in stretches(draws, even)]
    return np.concatenate(parts, axis=1)


def flat_positions(draws: Draws) -> Float[np.ndarray, "draw weight"]:
    """Positions of all draws as rows, chain by chain, in double precision."""
    leaves = jax.tree.leaves(draws.positions())
    return np.concatenate([np.asarray(leaf, np.float64).reshape(len(draws), -1) for leaf in leaves], axis=1)


def stretches(
    of: Source, weights: Float[np.ndarray, "chain draw"]
) -> Iterator[tuple[Float[np.ndarray, "draw weight"], Float[np.ndarray, " draw"]]]:
    """Rows of positions with their weights, some draws of all chains at a time."""
    draws = as_they_are(of)
    size = header_of(draws).layout().size
    num_draws = max(1, _STRETCH_BYTES // (4 * 8 * draws.num_chains * max(1, size)))  # rows, and three copies at work
    for i, part in enumerate(of.batches(num_draws)):
        yield flat_positions(part), weights[:, i * num_draws : (i + 1) * num_draws].reshape(-1)


def header_of(draws: Draws) -> Header:
    """What the draws carry besides arrays."""
    return Header(draws.model, draws.scaling, draws.example)


def _sums(of: Source, weights: Float[np.ndarray, "chain draw"]) -> tuple[np.ndarray, np.ndarray]:
    """θ̄ and Σ_i w_i (θ_i − θ̄)²."""
    seen, mean, squares = 0.0, np.zeros(()), np.zeros(())
    for rows, share in stretches(of, weights):
        more = share.sum()
        if more == 0:
            continue
        part = share @ rows / more
        shift = part - mean
        squares = squares + share @ (rows - part[None, :]) ** 2 + shift**2 * (seen * more / (seen + more))
        mean = mean + shift * (more / (seen + more))
        seen += more
    return mean, squares
