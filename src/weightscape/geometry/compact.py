"""Compact posteriors: one Gaussian in the place of many draws.

    q_r = N(θ̄, Σ) of re-based draws,        q_d the same of draws as they are

Draws from the posterior of a network lie in many equivalent modes, one for each order of the hidden units. A Gaussian
fitted across them (q_d) has its mean between the modes, where there is no good network. Once every draw is re-based
onto one of them, what is left is closer to one mode and a Gaussian can say more of it (q_r), in two numbers for each
weight. How close it is, `unimodality` measures.

Reference: Xiao, Liu & Bamler (2023), A compact representation for Bayesian neural networks by removing permutation
symmetry.
"""

import jax.numpy as jnp

from weightscape.core.checks import require, require_type
from weightscape.core.facts import Facts
from weightscape.core.types import Tree
from weightscape.draws import Draws
from weightscape.geometry.fits import DiagonalFit, Fit
from weightscape.geometry.moved_draws import rebased_draws
from weightscape.geometry.references import Reference
from weightscape.geometry.weight_moments import header_of, moments
from weightscape.inference import Gaussian
from weightscape.posterior import Posterior


def compact(
    draws: Draws,
    reference: Draws | Reference | Tree | None = None,
    *,
    structure: Fit | None = None,
    rebased: bool = True,
    floor: float | None = None,
    posterior: Posterior | None = None,
) -> Gaussian:
    """The Gaussian with the mean and the variances of the draws, over positions.

    - `reference`: what the draws are re-based onto, as in `rebase`; None is `Centre()`, around which they vary least.
    - `structure`: `DiagonalFit()`, the default, or `LowRankFit(rank)`.
    - `rebased`: with False the draws are taken as they are: q_d, or draws that were re-based before.
    - `floor`: the least standard deviation of a weight; without it a weight that does not vary is an error. How many
      weights were given it is among the facts.
    - `posterior`: the target; without it draws from the Gaussian do not know their log p(D, θ).

    Draws with `log_weights` count by their weights. Draws on disk are read stretch by stretch.

    Example:
    >>> gaussian = compact(draws, posterior=posterior)          # doctest: +SKIP
    >>> predictive = predict(gaussian.sample(key, 100), x)      # doctest: +SKIP
    """
    remedy = "Pass what `run` of a sampler or an ensemble returns."
    require_type(isinstance(draws, Draws), "`draws` of compact must be Draws", type(draws).__name__, remedy)
    chosen = DiagonalFit() if structure is None else structure
    remedy = "Pass `DiagonalFit()` or `LowRankFit(rank)`."
    require_type(isinstance(chosen, Fit), "`structure` of compact must be a Fit", type(chosen).__name__, remedy)
    remedy = "Leave `reference` out, or re-base."
    require(rebased or reference is None, "Draws taken as they are must have no reference", "one", remedy)
    taken = rebased_draws(draws, reference) if rebased else draws
    found = moments(taken)
    covariance, num_floored = chosen.fit(taken, found, floor)
    facts = Facts(
        method="compact",
        of=draws.facts.get("method"),
        structure=type(chosen).__name__,
        rebased=rebased,
        effective_sample_size=found.effective_sample_size,
        num_floored=num_floored,
    )
    location = jnp.asarray(found.mean, found.layout.dtype)
    return Gaussian(header_of(draws), posterior, None, facts, location, covariance, found.layout)
