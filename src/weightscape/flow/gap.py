"""J: how far a density is from the posterior, in both directions, without the normaliser of either.

    J = E_p[log p̃ − log q] − E_q[log p̃ − log q] = KL(p ‖ q) + KL(q ‖ p)

For log weights that are near normal the efficiency of importance sampling is about exp(−J).
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from weightscape.core.checks import require


class Gap(NamedTuple):
    """J in nats.

    - `standard_error`: from the spread of the log weights; draws of one chain count as one.
    - `spread_under_posterior`, `spread_under_flow`: standard deviations of the log weights.
    """

    value: float
    standard_error: float
    spread_under_posterior: float
    spread_under_flow: float

    def __str__(self) -> str:
        spreads = f"{self.spread_under_posterior:.2f} under p, {self.spread_under_flow:.2f} under q"
        return f"J = {self.value:.2f} ± {self.standard_error:.2g} nats (spread of the log weights {spreads})"


def gap_of(under_posterior: Float[np.ndarray, "chain draw"], under_flow: Float[np.ndarray, " fresh"]) -> Gap:
    """J from log p̃ − log q of posterior draws, chain by chain, and of independent draws from q."""
    for what, values in (("posterior", under_posterior), ("flow", under_flow)):
        broken = int(np.sum(~np.isfinite(values)))
        asked = f"Log weights of the {what}'s draws must be finite"
        require(broken == 0, asked, f"{broken} that are not", "Use healthy chains, or more solver steps.")
    by_chain = under_posterior.mean(axis=1) if len(under_posterior) > 1 else under_posterior[0]
    variance = by_chain.var(ddof=1) / len(by_chain) + under_flow.var(ddof=1) / len(under_flow)
    value = under_posterior.mean() - under_flow.mean()
    return Gap(float(value), float(np.sqrt(variance)), float(under_posterior.std()), float(under_flow.std()))
