"""The evidence log p(D) from a ladder of temperatures, by stepping stones.

    log p(D) = Σ_k log E_k[ exp((β_{k+1} − β_k) ℓ) ],      ℓ = log p(D | θ),  E_k under p(D | θ)^β_k p(θ) / Z_k

Each stone is a ratio Z_{k+1} / Z_k of neighbours, estimated from the warmer one; with β_0 = 0 the first of them starts
at the prior, which is normalised, so the sum is log p(D) itself. Each ratio is unbiased; its logarithm is biased low by
half its squared standard error.

Reference: Xie, Lewis, Fan, Kuo & Chen (2011), Improving marginal likelihood estimation, equation 13.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from weightscape.core.checks import require
from weightscape.core.config import decode
from weightscape.draws import Draws
from weightscape.inference.mcmc.tempering import LADDER, ParallelTempering, ladder_powers

_NUM_BATCHES = 10


class LadderEvidence(NamedTuple):
    """log p(D) and its standard error, from the spread over batches of draws of each chain."""

    value: float
    standard_error: float


def ladder_evidence(draws: Draws) -> LadderEvidence:
    """log p(D) in the targets' original units, from draws of `ParallelTempering` at temperature 1.

    Example:
    >>> draws = ParallelTempering().run(key, posterior)         # doctest: +SKIP
    >>> print(ladder_evidence(draws))                           # doctest: +SKIP

    """
    names = sorted(name for name in draws.info if name.startswith(LADDER))
    remedy = "Pass what `ParallelTempering().run` returned."
    asked = "`draws` of ladder_evidence must come from a ladder of temperatures"
    require(bool(names), asked, draws.facts.get("method", "other draws"), remedy)
    asked = f"`draws` of ladder_evidence must have at least {_NUM_BATCHES} draws of each chain"
    require(draws.num_draws >= _NUM_BATCHES, asked, draws.num_draws, "Run for longer.")
    method = decode(draws.facts["settings"], {})
    assert isinstance(method, ParallelTempering)
    require(float(method.temperature) == 1, "The evidence must be asked for at temperature 1", method.temperature, "")
    steps = np.diff(np.asarray(ladder_powers(method.num_replicas, method.spacing), np.float64))
    warmer = np.stack([np.asarray(draws.info[name], np.float64) for name in names[:-1]])
    log_ratios = steps[:, None, None] * warmer
    stones = logsumexp(log_ratios, axis=(1, 2)) - np.log(log_ratios[0].size)
    return LadderEvidence(float(stones.sum()), _standard_error(log_ratios - stones[:, None, None]))


def _standard_error(log_terms: np.ndarray) -> float:
    """Of Σ_k log mean exp, by the delta method: batch means of the sum over stones of exp(term) − 1."""
    terms = np.sum(np.expm1(log_terms), axis=0)
    length = terms.shape[1] // _NUM_BATCHES
    batches = terms[:, : length * _NUM_BATCHES].reshape(-1, length).mean(axis=1)
    return float(batches.std(ddof=1) / np.sqrt(len(batches)))
