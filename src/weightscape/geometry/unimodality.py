"""How close to one mode a set of draws is: before and after symmetries are removed.

The midpoint gap of a pair of draws is what the log density gains half-way between them,

    g(θ, θ') = log p((θ + θ')/2) − ½ (log p(θ) + log p(θ')).

It is never negative where log p is concave, and for N(μ, Σ) in d dimensions it is |θ − θ'|²_{Σ⁻¹}/8, which is
distributed as ¼ χ²_d for independent draws:

    E g = d/4,        Var g = d/8.

So g · 4/d, the *relative gap*, is 1 for a Gaussian of any shape and 0 for a flat density on a convex set; draws in
different modes make it negative. A pair *dips* where the midpoint lies below both ends: no pair does where the density
is quasi-concave, which is the conjecture about networks with their permutations removed.

The share of variance between chains needs no density:

    B = Σ_j Var_c(E[θ_j | chain c]) / Σ_j Var(θ_j)

It is 0 where all chains have the same mean, and 1 where chains do not overlap at all. Of n independent draws in each of
C chains that agree it is about 1/n.

References: Entezari, Sedghi, Saukh & Neyshabur (2022), The role of permutation invariance in linear mode connectivity,
conjecture 1; Ainsworth, Hayase & Srinivasa (2023), Git Re-Basin.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from weightscape.core import PRNGKey, Scalar, tree
from weightscape.core.checks import require, require_count, require_finite, require_type
from weightscape.core.keys import require_key
from weightscape.draws import Draws
from weightscape.geometry.weight_moments import chain_means, header_of, moments
from weightscape.posterior import Position

LogDensity = Callable[[Position], Scalar]
_AT_ONCE = 16


class Unimodality(NamedTuple):
    """How close to one mode draws are.

    - `gap`: the mean midpoint gap in nats, with its `standard_error` over pairs.
    - `relative_gap`: gap · 4/d; 1 for a Gaussian.
    - `share_of_dips`: the share of pairs whose midpoint lies below both ends.
    - `between_chains`: the share of variance between chains; NaN for a single one.
    - `total_variance`: Σ_j Var(θ_j).
    - `gaps`: g of each pair.
    """

    gap: float
    standard_error: float
    relative_gap: float
    share_of_dips: float
    between_chains: float
    total_variance: float
    gaps: Float[np.ndarray, " pair"]

    def __str__(self) -> str:
        return (
            f"midpoint gap {self.gap:.4g} ± {self.standard_error:.2g} nats ({self.relative_gap:.3g} of a Gaussian's), "
            f"{self.share_of_dips:.0%} of {len(self.gaps)} pairs dip; {self.between_chains:.0%} of the variance "
            f"{self.total_variance:.4g} lies between chains"
        )


def unimodality(key: PRNGKey, draws: Draws, log_density: LogDensity, *, num_pairs: int = 200) -> Unimodality:
    """Midpoint gaps of random pairs of draws, and the share of variance between chains.

    - `log_density`: of a position, such as `posterior.log_density`; it need not be normalised.
    - `num_pairs`: at most so many pairs. No draw is in two of them, and the two draws of a pair come from different
      chains where there are several; the standard error holds for draws that are independent, so thin chains first.

    Example:
    >>> before = unimodality(key, draws, posterior.log_density)                   # doctest: +SKIP
    >>> after = unimodality(key, rebase(draws), posterior.log_density)            # doctest: +SKIP
    """
    require_key(key, "unimodality")
    _require_pairs(draws, num_pairs)
    left, right = draw_pairs(key, draws.num_chains, draws.num_draws, num_pairs)
    flat = jax.tree.map(lambda leaf: leaf.reshape(len(draws), *leaf.shape[2:]), draws.params)
    ends = [jax.tree.map(lambda leaf, side=side: jnp.asarray(leaf[side]), flat) for side in (left, right)]
    gaps, dips = (np.asarray(part, np.float64) for part in _gaps(log_density, *map(_positions(draws), ends)))
    require_finite("Log densities at draws and at their midpoints", gaps)
    mean, error = gaps.mean(), gaps.std(ddof=1) / math.sqrt(len(gaps))
    relative = 4 * mean / header_of(draws).layout().size
    spread = moments(draws).total_variance
    return Unimodality(
        float(mean), float(error), float(relative), float(dips.mean()), between_chains(draws), spread, gaps
    )


def between_chains(draws: Draws) -> float:
    """B: the share of the variance of the weights that lies between the means of chains."""
    if draws.num_chains == 1:
        return float("nan")
    total = moments(draws).total_variance * (len(draws) - 1) / len(draws)
    return float(chain_means(draws).var(axis=0).sum() / total)


def draw_pairs(
    key: PRNGKey, num_chains: int, num_draws: int, num_pairs: int
) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """Disjoint pairs of draws, as places chain by chain; of different chains where there are several."""
    key_chain, key_draw, key_pair = jax.random.split(key, 3)
    chains = np.asarray(jax.random.permutation(key_chain, num_chains))
    order = jax.random.permutation(key_draw, jnp.tile(jnp.arange(num_draws), (num_chains, 1)), axis=1, independent=True)
    places = (chains[:, None] * num_draws + np.asarray(order)).reshape(-1)
    half = len(places) // 2  # at least one whole chain further on, where there are two
    chosen = np.asarray(jax.random.permutation(key_pair, half))[: min(num_pairs, half)]
    return places[chosen], places[chosen + half]


@eqx.filter_jit
def _gaps(log_density: LogDensity, left: Position, right: Position) -> tuple[Float[Array, " pair"], Array]:
    def one(pair):
        a, b = pair
        ends = jnp.stack([log_density(a), log_density(b)])
        middle = log_density(tree.scale(0.5, tree.add(a, b)))
        return middle - jnp.mean(ends), middle < jnp.min(ends)

    return jax.lax.map(one, (left, right), batch_size=_AT_ONCE)


def _positions(draws: Draws) -> Callable:
    return lambda params: jax.vmap(draws.model.unplace)(params)


def _require_pairs(draws: Draws, num_pairs: int) -> None:
    remedy = "Pass what `run` of a sampler or `rebase` returns."
    require_type(isinstance(draws, Draws), "`draws` of unimodality must be Draws", type(draws).__name__, remedy)
    require_count("`num_pairs` of unimodality", num_pairs, least=2)
    asked = "`draws` of unimodality must hold at least four draws"
    require(len(draws) >= 4, asked, len(draws), "Draw more.")
    remedy = "Resample them by their weights first."
    require(draws.log_weights is None, "`draws` of unimodality must weigh the same", "`log_weights`", remedy)
