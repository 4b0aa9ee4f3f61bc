"""Pruning: weights that matter little are set to zero.

    m_j = 1 for the ⌈k d⌉ of d weights with the largest score, else 0,        θ_j ← m_j θ_j

The scores come from the spread of the posterior, which means something for a single weight only once the draws are
re-based. Scales of the noise and of the prior are no weights and stay.
"""

import dataclasses
import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Int

from weightscape.core.checks import InputError, require, require_type
from weightscape.core.types import Tree
from weightscape.draws import Draws
from weightscape.geometry.known_density import with_density
from weightscape.geometry.pruning_scores import ByStandardDeviation, PruningScore
from weightscape.geometry.weight_moments import Moments, moments
from weightscape.inference import Blocks, Covariance, Diagonal, Full, Gaussian, LowRank
from weightscape.posterior import Posterior


class Pruned(NamedTuple):
    """What was pruned, and which weights are left.

    - `result`: the Draws or the Gaussian with the other weights at zero.
    - `mask`: a tree like the network's weights, True where a weight is kept.
    """

    result: Draws | Gaussian
    mask: Tree

    @property
    def num_kept(self) -> int:
        """How many weights are left."""
        return sum(int(np.sum(leaf)) for leaf in jax.tree.leaves(self.mask))


def prune(
    of: Draws | Gaussian,
    keep: float = 0.5,
    *,
    by: PruningScore | None = None,
    found: Moments | None = None,
    posterior: Posterior | None = None,
) -> Pruned:
    """Keep a share of the network's weights and set the others to zero, in every draw alike.

    - `of`: draws, re-based before, or one merged network as draws, or a Gaussian.
    - `keep`: k, the share of weights that are kept.
    - `by`: `ByStandardDeviation()`, the default, `BySignalToNoise()` or `ByMagnitude()`.
    - `found`: the moments that are scored; those of `of` itself where None. A single network has no spread of its own.
    - `posterior`: the target; without it pruned draws do not know their log p(D, θ).

    A pruned Gaussian is fixed at zero in the weights that went: it has a density over the others only.
    """
    chosen = ByStandardDeviation() if by is None else by
    remedy = "Pass `ByStandardDeviation()`, `BySignalToNoise()` or `ByMagnitude()`."
    require_type(isinstance(chosen, PruningScore), "`by` of prune must be a score", type(chosen).__name__, remedy)
    scored = moments(of) if found is None else found
    kept = kept_weights(scored, keep, chosen)
    mask = scored.layout.unflatten(jnp.asarray(kept, scored.layout.dtype)).network
    if isinstance(of, Gaussian):
        result = _prune_gaussian(of, kept, posterior)
    else:
        result = with_density(_prune_draws(of, mask), posterior)
    return Pruned(result, jax.tree.map(lambda leaf: np.asarray(leaf, bool), mask))


def kept_weights(found: Moments, keep: float, by: PruningScore) -> Bool[np.ndarray, " weight"]:
    """m over a flat position: True for kept weights, and for all that is no weight; of equal scores the first stay."""
    inside = 0 < keep <= 1
    require(inside, "`keep` of prune must be above 0 and at most 1", keep, "Pass a share such as 0.5.")
    where = np.flatnonzero(found.is_weight)
    score = by.score(found)[where]
    order = np.argsort(-score, kind="stable")
    kept = np.ones(found.layout.size, bool)
    kept[where[order[math.ceil(round(keep * len(where), 9)) :]]] = False  # 0.7 · 10 is 7.000000000000001
    return kept


def _prune_draws(draws: Draws, mask: Tree) -> Draws:
    network = jax.tree.map(
        lambda leaf, kept: leaf * np.asarray(kept, leaf.dtype)[None, None], draws.params.network, mask
    )
    return eqx.tree_at(lambda d: d.params.network, draws, network)


def _prune_gaussian(gaussian: Gaussian, kept: Bool[np.ndarray, " weight"], posterior: Posterior | None) -> Gaussian:
    where = np.flatnonzero(kept)
    part = gaussian.covariance if len(where) == gaussian.layout.size else _marginal(gaussian.covariance, where)
    covariance = part if len(where) == gaussian.layout.size else Blocks((part,), (where,), gaussian.layout.size)
    return dataclasses.replace(
        gaussian,
        posterior=posterior or gaussian.posterior,
        estimate=None,
        facts=gaussian.facts.plus(num_pruned=int(np.sum(~kept))),
        location=gaussian.location * jnp.asarray(kept, gaussian.location.dtype),
        covariance=covariance,
    )


def _marginal(covariance: Covariance, where: Int[np.ndarray, " kept"]) -> Covariance:
    """The covariance of some weights, the others averaged over."""
    if isinstance(covariance, Diagonal):
        return Diagonal(covariance.scale[where])
    if isinstance(covariance, LowRank) and bool(jnp.all(covariance.gains >= 0)):
        factor = covariance.scale[:, None] * covariance.basis * jnp.sqrt(covariance.gains)[None, :]
        return LowRank.of_covariance(covariance.scale[where], factor[where])
    if isinstance(covariance, Full):
        root = covariance.root_matrix[where]
        return Full.of_covariance(root @ root.T)
    raise InputError(
        "A pruned Gaussian must have a diagonal, stretched or full covariance, got "
        f"{type(covariance).__name__}. Prune its draws: `prune(gaussian.sample(key, n))`."
    )
