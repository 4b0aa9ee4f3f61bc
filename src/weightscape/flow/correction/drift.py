"""Drift: whether an ensemble of chains still travels.

Chains that have arrived have the same distribution after every transition. So of each quantity f, the change along
each chain,

    last    d_c = f(θ_c at the last transition) − f(θ_c at the middle one)
    halves  d_c = mean of f over the second half of the transitions − mean over the first half

has mean zero over chains c, and z = mean(d) / (sd(d) / √n) is nearly standard normal. Pairing takes away the spread
between chains, which would hide a drift. A chain that stays where it is shows none: such chains are counted apart.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

_FALSE_ALARMS = 1e-3
"""How often chains that have arrived are said to drift."""


class Drift(NamedTuple):
    """The change of each quantity between two moments, averaged over chains.

    - `change`: mean(d).  `standard_error`: sd(d) / √n.  `spread`: the standard deviation of f over chains at the end,
      beside which a change may be negligible.
    """

    change: Float[np.ndarray, " quantity"]
    standard_error: Float[np.ndarray, " quantity"]
    spread: Float[np.ndarray, " quantity"]

    @property
    def z(self) -> Float[np.ndarray, " quantity"]:
        """The change in its standard errors; 0 where nothing can change, infinite where no chain differs in it."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.change == 0, 0.0, self.change / self.standard_error)

    @property
    def is_still(self) -> bool:
        """Whether no quantity changes by more than chance allows.

        The limit of |z| grows with the number of quantities, so that of ensembles which have arrived one in a thousand
        fails. NaN is no stillness.
        """
        limit = stats.norm.isf(_FALSE_ALARMS / 2 / max(1, len(self.change)))
        return bool(np.all(np.abs(self.z) < limit))


def drift_at_the_end(trace: Float[np.ndarray, "moment chain quantity"]) -> Drift:
    """From the middle moment to the last; the first moment is where the chains began."""
    return _drift(trace[-1] - trace[(len(trace) - 1) // 2], trace[-1])


def drift_between_halves(trace: Float[np.ndarray, "moment chain quantity"]) -> Drift:
    """From the first half of the moments to the second; of an odd number the middle one is left out."""
    half = len(trace) // 2
    return _drift(trace[-half:].mean(axis=0) - trace[:half].mean(axis=0), trace[-1])


def too_many_dead(num_dead: int, num_chains: int, acceptance: Float[np.ndarray, " transition"]) -> bool:
    """Whether more chains never moved than chance explains, or more than half.

    Chance explains n Π_t (1 − a_t) on average, a_t the mean acceptance of transition t. Chains that do not move show no
    drift wherever they are, so with many of them stillness means nothing.
    """
    expected = num_chains * np.prod(1 - np.clip(acceptance, 0, 1))
    by_chance = stats.poisson.sf(num_dead - 1, expected) >= _FALSE_ALARMS
    return not by_chance or 2 * num_dead > num_chains


def _drift(changes: Float[np.ndarray, "chain quantity"], last: Float[np.ndarray, "chain quantity"]) -> Drift:
    error = changes.std(axis=0, ddof=1) / np.sqrt(len(changes))
    return Drift(changes.mean(axis=0), error, last.std(axis=0, ddof=1))
