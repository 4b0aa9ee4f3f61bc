"""Flags: what is unusual about a chain, though no reason to leave it out.

With m_c the mean log density of chain c and s a typical standard deviation along a chain, chain c is far from the
others where

    |m_c − m| > 5 s.
"""

import numpy as np
from jaxtyping import Float

from weightscape.draws.chain_record import ChainRecord

LEAST_ACCEPTANCE = 0.1
"""A chain that accepts less than this is flagged."""

MOST_DIVERGENT = 0.01
"""A chain with a larger share of divergent transitions is flagged."""

FAR = 5.0
"""A chain whose mean log density is further from the median, in standard deviations, is flagged."""

LEAST_DRAWS = 10
"""With fewer draws of each chain their log densities are not compared."""


def flag_chains(
    log_density: Float[np.ndarray, "chain draw"], records: tuple[ChainRecord, ...], usable: list[int]
) -> dict[int, str]:
    """Why some of the `usable` chains deserve a look, by chain.

    Flagged are chains that accept fewer than one proposal in ten, chains with more than 1 % divergent transitions, and
    chains with |m_c − m| > 5 s. m is the median of the means of the usable chains, and s the median of their standard
    deviations, so that a few odd chains cannot hide themselves.

    - Few chains: with an even number there are two middle means, and m is the one further from m_c. So where two
      chains, or two equal halves, disagree, all are flagged: nobody can say which is right. One alone is never far.
    - Short chains: below ten draws the standard deviations say too little, and nothing is compared. In short runs of
      slow chains they are too small, so that more is flagged, never less.
    """
    distances = _distances(np.asarray(log_density, np.float64)[usable])
    flags = {}
    for chain, distance in zip(usable, distances, strict=True):
        reasons = _reasons(records[chain], float(distance), log_density.shape[1])
        if reasons:
            flags[chain] = ", and ".join(reasons)
    return flags


def _reasons(record: ChainRecord, distance: float, num_draws: int) -> list[str]:
    reasons = []
    if abs(distance) > FAR:
        side = "above" if distance > 0 else "below"
        reasons.append(f"its log density lies {abs(distance):.3g} standard deviations {side} the other chains'")
    if record.acceptance is not None and record.acceptance < LEAST_ACCEPTANCE:
        reasons.append(f"it accepts only {100 * record.acceptance:.2g} % of its proposals")
    if record.divergences is not None and record.divergences > MOST_DIVERGENT * num_draws:
        reasons.append(f"{100 * record.divergences / num_draws:.2g} % of its transitions diverged")
    return reasons


def _distances(log_density: Float[np.ndarray, "chain draw"]) -> Float[np.ndarray, " chain"]:
    """(m_c − m) / s for each chain, with its sign; zeros where there is nothing to compare."""
    if len(log_density) < 2 or log_density.shape[1] < LEAST_DRAWS:
        return np.zeros(len(log_density))
    means, spread = log_density.mean(axis=1), np.median(log_density.std(axis=1, ddof=1))
    lower, upper = (np.quantile(means, 0.5, method=method) for method in ("lower", "higher"))
    further = np.where(np.abs(means - lower) > np.abs(means - upper), means - lower, means - upper)
    with np.errstate(divide="ignore", invalid="ignore"):  # constant chains: far where they differ at all
        return np.nan_to_num(further / spread, nan=0.0)
