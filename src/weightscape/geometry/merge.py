"""Merging: many networks become one by averaging their weights.

    θ̄ = Σ_i w_i g_i θ_i,        Σ_i w_i = 1

g_i re-bases network i, without which the average of equivalent networks is none of them. The average is taken over
positions, so that it is the mean of the compact posterior of the same networks.

References: Ainsworth, Hayase & Srinivasa (2023), Git Re-Basin, section 5; Wortsman et al. (2022), Model soups.
"""

import dataclasses

import numpy as np
from jaxtyping import ArrayLike

from weightscape.core.checks import require, require_type
from weightscape.core.facts import Facts
from weightscape.core.types import Tree
from weightscape.draws import Draws
from weightscape.geometry.known_density import with_density
from weightscape.geometry.lone_network import network_at
from weightscape.geometry.moved_draws import rebased_draws
from weightscape.geometry.references import Reference
from weightscape.geometry.weight_moments import header_of, mean_position
from weightscape.posterior import Posterior


def merge(
    draws: Draws,
    reference: Draws | Reference | Tree | None = None,
    *,
    weights: ArrayLike | None = None,
    rebased: bool = True,
    posterior: Posterior | None = None,
) -> Draws:
    """The average of networks as draws: one chain of one draw.

    - `draws`: the networks; `first.merge([second])` puts those of several runs together.
    - `reference`: what they are re-based onto, as in `rebase`; None is `Centre()`.
    - `weights`: w, of shape (chain, draw) and with any sum; the draws' own importance weights where None.
    - `rebased`: with False the networks are averaged as they are.
    - `posterior`: the target; without it the merged network's log p(D, θ) is NaN.
    """
    remedy = "Pass what `run` of a sampler or an ensemble returns."
    require_type(isinstance(draws, Draws), "`draws` of merge must be Draws", type(draws).__name__, remedy)
    chosen = draws if weights is None else _weighted(draws, np.asarray(weights, np.float64))
    position = mean_position(rebased_draws(chosen, reference) if rebased else chosen)
    facts = Facts(method="merge", of=draws.facts.get("method"), num_merged=len(draws), rebased=rebased)
    return with_density(network_at(header_of(draws), position, facts), posterior)


def _weighted(draws: Draws, weights: np.ndarray) -> Draws:
    wanted = draws.log_density.shape
    require(weights.shape == wanted, f"`weights` of merge must have shape {wanted}", weights.shape, "One a network.")
    fair = bool(np.all(np.isfinite(weights) & (weights >= 0)) and weights.sum() > 0)
    remedy = "Pass numbers from zero on, not all of them zero."
    require(fair, "`weights` of merge must not be negative, and some positive", "others", remedy)
    with np.errstate(divide="ignore"):  # the logarithm of no weight
        return dataclasses.replace(draws, log_weights=np.log(weights))
