"""Checks of the chains of a run on its test rows, as tables and pictures with words on how to read them."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from weightscape.data import Batch
from weightscape.draws import Diagnostics, Draws, RunningLppd, diagnose, running_lppd
from weightscape.report.chains import convergence_table, health_table, rhat_verdict
from weightscape.report.convergence import plot_convergence, plot_lppd
from weightscape.report.report import Picture, Table

_MOST_PROBES = 32
_MOST_ROWS = 1000
_LEAST_DRAWS = 20


class Checks(NamedTuple):
    """Whether the chains agree at some test rows, and how their LPPD grows."""

    diagnostics: Diagnostics
    lppd: RunningLppd


def check_chains(draws: Draws, test: Batch) -> Checks | None:
    """Checks of chains in time, on test rows; None for points, ensembles, weighted draws and very short chains."""
    if not _are_chains(draws):
        return None
    return Checks(diagnose(draws, _spread(test, _MOST_PROBES).x), running_lppd(draws, _spread(test, _MOST_ROWS)))


def function_rhat(draws: Draws, test: Batch) -> float | None:
    """The worst R̂ at some test rows; None where `check_chains` has nothing to check, and where no function changes."""
    if not _are_chains(draws):
        return None
    rhat = diagnose(draws, _spread(test, _MOST_PROBES).x).worst_rhat
    return None if np.isnan(rhat) else rhat


def chain_tables(draws: Draws, checks: Checks | None) -> Iterator[Table]:
    """Whether the chains agree, and the health of each, where either is known."""
    if checks is not None:
        yield convergence_table(checks.diagnostics)
    if draws.health.chains:
        yield health_table(draws.health)


def chain_pictures(checks: Checks | None) -> Iterator[Picture]:
    """R̂ and effective sample sizes, and the running LPPD, with how to read them."""
    if checks is None:
        return
    caption = (
        f"On the test rows: {rhat_verdict(checks.diagnostics.worst_rhat)}. Left: dots below the green line are good; "
        "above the orange one the chains tell different stories, and predictions depend on which you ask. Right: dots "
        "above the green line are worth enough independent draws; where they are not, run longer chains."
    )
    yield Picture("convergence", "Agreement of the chains", caption, plot_convergence(checks.diagnostics))
    caption = (
        "How well the test rows are predicted as draws are added; higher is better. Flat at the right end: more draws "
        "would change little. Thin lines at different heights: each chain knows a part of the posterior; the thick "
        "line averages them, and more chains would help."
    )
    yield Picture("lppd", "Predictions as draws are added", caption, plot_lppd(checks.lppd))


def _are_chains(draws: Draws) -> bool:
    return draws.num_chains > 1 and draws.num_draws >= _LEAST_DRAWS and draws.log_weights is None


def _spread(batch: Batch, most: int) -> Batch:
    """At most `most` rows, evenly spread over the batch."""
    rows = np.unique(np.linspace(0, len(batch) - 1, most).round().astype(int))
    return Batch(batch.x[rows], batch.y[rows], batch.scaling)
