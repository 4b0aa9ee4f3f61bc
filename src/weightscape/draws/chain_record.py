"""What is known of each chain, as plain numbers that a store can keep."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped


class ChainRecord(NamedTuple):
    """One chain in numbers; None where the method does not note it, or where it is not finite.

    - `acceptance`: the mean acceptance probability.
    - `divergences`: how many transitions diverged.
    - `energy_error`: √(mean ΔH²) over the transitions whose error ΔH is finite; the others have diverged.
    - `moved`: the share of draws that differ from the one before.
    - `log_density`: the mean of log p(D, θ).
    - `bfmi`: the Bayesian fraction of missing information, Σ (E_t − E_{t−1})² / ((n − 1) Var E): how far the energy
      E moves in one transition. Below 0.3 momenta are too weak for the target's tails.

    Reference: Betancourt (2016), Diagnosing suboptimal cotangent disintegrations in HMC.
    """

    acceptance: float | None = None
    divergences: int | None = None
    energy_error: float | None = None
    moved: float | None = None
    log_density: float | None = None
    bfmi: float | None = None


def record_chains(
    log_density: Float[np.ndarray, "chain draw"], info: Mapping[str, Shaped[Any, "chain draw"]]
) -> tuple[ChainRecord, ...]:
    """One record for each chain, from its log densities and what the method noted of each draw."""
    return tuple(
        _record(np.asarray(log_density[chain]), {name: np.asarray(values[chain]) for name, values in info.items()})
        for chain in range(len(log_density))
    )


def _record(log_density: np.ndarray, info: Mapping[str, np.ndarray]) -> ChainRecord:
    return ChainRecord(
        acceptance=_mean(info.get("acceptance")),
        divergences=int(np.sum(info["is_divergent"])) if "is_divergent" in info else None,
        energy_error=_root_mean_square(info.get("energy_error")),
        moved=_mean(info.get("is_accepted")),
        log_density=_mean(log_density),
        bfmi=_bfmi(info.get("energy")),
    )


def _mean(values: np.ndarray | None) -> float | None:
    if values is None:
        return None
    with np.errstate(invalid="ignore"):  # infinities of both signs
        return _finite(np.mean(values, dtype=np.float64))


def _root_mean_square(errors: np.ndarray | None) -> float | None:
    if errors is None or not np.any(np.isfinite(errors)):
        return None
    return _finite(np.sqrt(np.mean(np.square(errors[np.isfinite(errors)], dtype=np.float64))))


def _bfmi(energy: np.ndarray | None) -> float | None:
    if energy is None or len(energy) < 2 or not np.all(np.isfinite(energy)) or np.ptp(energy) == 0:
        return None
    steps = np.diff(energy.astype(np.float64))
    return _finite(np.mean(steps**2) / np.var(energy, dtype=np.float64, ddof=1))


def _finite(value: float | np.floating) -> float | None:
    """A plain number, or None: JSON has neither infinities nor NaN."""
    return float(value) if math.isfinite(value) else None
