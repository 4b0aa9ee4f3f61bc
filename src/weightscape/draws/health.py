"""Chain health: which chains may be used, and which deserve a look.

A chain is *left out* on its dynamics alone: it did not move, or it is not finite. It is *flagged*, and kept, where
something about it is unusual: a log density far from the others', few accepted proposals, many divergences. A low log
density is never a reason to leave a chain out: it may be a true mode.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from weightscape.core.checks import require
from weightscape.draws.chain_record import ChainRecord, record_chains
from weightscape.draws.flags import flag_chains

_MOST_NAMED = 8
_REMEDY = "Start from another `init` (a MAP point or an ensemble), lower `step_size`, or warm up for longer"


class HealthRow(NamedTuple):
    """One chain in a table: its number, what is known of it, and the verdict in words."""

    chain: int
    record: ChainRecord
    verdict: str


class Health(NamedTuple):
    """What is known of `num_chains` chains, numbered as they were run.

    - `left_out`: (chain, reason) of those that may not be used.
    - `flagged`: (chain, reason) of those that are kept, and deserve a look.
    - `chains`: the numbers behind it, one record for each chain; empty where nobody examined them.
    """

    num_chains: int
    left_out: tuple[tuple[int, str], ...] = ()
    flagged: tuple[tuple[int, str], ...] = ()
    chains: tuple[ChainRecord, ...] = ()

    @property
    def kept(self) -> tuple[int, ...]:
        """The chains that may be used."""
        gone = {chain for chain, _ in self.left_out}
        return tuple(chain for chain in range(self.num_chains) if chain not in gone)

    def rows(self) -> tuple[HealthRow, ...]:
        """One row for each chain that was examined, for tables."""
        verdicts = {chain: f"left out: {reason}" for chain, reason in self.left_out}
        verdicts |= {chain: f"flagged: {reason}" for chain, reason in self.flagged}
        return tuple(HealthRow(i, record, verdicts.get(i, "healthy")) for i, record in enumerate(self.chains))

    def __str__(self) -> str:
        if not self.left_out and not self.flagged:
            return f"all {self.num_chains} chains healthy" if self.num_chains != 1 else "the chain is healthy"
        kept = f"{len(self.kept)} of {self.num_chains} chains kept"
        return "; ".join([kept, *_named("left out", self.left_out), *_named("flagged", self.flagged)])


def examine_chains(
    log_density: Float[np.ndarray, "chain draw"],
    info: Mapping[str, Shaped[Any, "chain draw"]],
    *,
    strict: bool = False,
    keep_all: bool = False,
) -> Health:
    """The health of chains.

    Left out are chains whose log density is not finite, and those that never moved; the rules for flags stand in
    `flags.flag_chains`.

    - `info`: what the method noted of each draw. `acceptance`, `is_accepted` (the draw moved), `is_divergent`,
      `energy` and `energy_error` are used where they are there.
    - `strict`: whether a chain that would be left out is an error.
    - `keep_all`: whether to leave none out; those that would be are flagged with the reason.

    Raises where no chain can be used, unless `keep_all` is asked for.
    """
    asked = "At most one of `strict` and `keep_all` may be asked for"
    require(not (strict and keep_all), asked, "both", "Drop one of them.")
    records = record_chains(log_density, info)
    broken = {chain: reason for chain, record in enumerate(records) if (reason := _fault(record)) is not None}
    usable = [chain for chain in range(len(records)) if chain not in broken]
    flags = flag_chains(log_density, records, usable)
    left_out = tuple(broken.items())
    if keep_all:
        return Health(len(records), (), tuple(sorted({**flags, **broken}.items())), records)
    health = Health(len(records), left_out, tuple(flags.items()), records)
    require(bool(usable), "At least one chain must move and be finite", health, f"{_REMEDY}.")
    remedy = f"{_REMEDY}; without `strict` they are left out, with `keep_all` they stay."
    came = "; ".join(f"chain {chain}: {reason}" for chain, reason in left_out)
    require(not (strict and left_out), "With `strict` every chain must move and be finite", came, remedy)
    return health


def decode_health(stored: Any, num_chains: int) -> Health:
    """Health as JSON holds it, in today's form or an older one; None means that nobody examined the chains."""
    if stored is None:
        return Health(num_chains)
    whole = isinstance(stored, list) and 2 <= len(stored) <= 4
    require(whole, "Stored health must be a list of two to four parts", repr(stored), "The folder is damaged.")
    num_run, left_out, flagged, chains = [*stored, [], []][:4]  # the first version stored two parts
    return Health(num_run, _pairs(left_out), _pairs(flagged), tuple(ChainRecord(*record) for record in chains))


def _pairs(stored: Any) -> tuple[tuple[int, str], ...]:
    return tuple((chain, reason) for chain, reason in stored)


def _fault(record: ChainRecord) -> str | None:
    """Why a chain may not be used, or None."""
    if record.log_density is None:
        return "its log density is not finite"
    return "it did not move" if record.moved == 0 else None


def _named(verdict: str, chains: tuple[tuple[int, str], ...]) -> list[str]:
    """`chain 3 left out: reason` for the first few, then how many more there are."""
    more = len(chains) - _MOST_NAMED
    named = [f"chain {chain} {verdict}: {reason}" for chain, reason in chains[:_MOST_NAMED]]
    return named + [f"{more} more {verdict}"] * (more > 0)
