"""Chain health: which chains may be used, judged by their dynamics alone.

A chain is left out when it did not move or is not finite. A low log density is never a reason: it may be a
true mode.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from weightscape.core.checks import InputError


class Health(NamedTuple):
    """Of `num_chains` chains, those `left_out` (chain, reason) and those kept."""

    num_chains: int
    left_out: tuple[tuple[int, str], ...] = ()

    @property
    def kept(self) -> tuple[int, ...]:
        """The chains that may be used."""
        gone = {chain for chain, _ in self.left_out}
        return tuple(chain for chain in range(self.num_chains) if chain not in gone)

    def __str__(self) -> str:
        if not self.left_out:
            return f"all {self.num_chains} chains healthy"
        reasons = "; ".join(f"chain {chain}: {reason}" for chain, reason in self.left_out)
        return f"{len(self.left_out)} of {self.num_chains} chains left out ({reasons})"


def examine_chains(log_density: Float[np.ndarray, "chain draw"], moved: Bool[np.ndarray, "chain draw"]) -> Health:
    """The health of chains from their log densities and whether each transition moved.

    Raises where no chain can be used.
    """
    left_out = []
    for chain in range(len(log_density)):
        if not np.all(np.isfinite(log_density[chain])):
            left_out.append((chain, "its log density is not finite"))
        elif not np.any(moved[chain]):
            left_out.append((chain, "it did not move"))
    health = Health(len(log_density), tuple(left_out))
    if not health.kept:
        raise InputError(
            f"At least one chain must move, got {health}. Start from another `init` (a MAP point or an ensemble), "
            "lower `step_size`, or warm up for longer."
        )
    return health
