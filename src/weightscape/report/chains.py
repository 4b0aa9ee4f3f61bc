"""The chains of a run in tables: the health of each, and whether they agree."""

import math

from weightscape.draws import ChainRecord, Diagnostics, Health
from weightscape.report.numbers import counted, percent, shown
from weightscape.report.report import Table

GOOD_RHAT = 1.01
POOR_RHAT = 1.05
ENOUGH_ESS = 400
"""Effective draws from which on R̂ and intervals can be trusted: Vehtari et al. (2021), section 1."""

_MOST_ROWS = 32
_COLUMNS = {
    "acceptance": "acceptance",
    "divergences": "divergent transitions",
    "energy_error": "energy error",
    "moved": "draws that moved",
    "log_density": "mean log density",
    "bfmi": "energy mixing (BFMI)",
}


def health_table(health: Health) -> Table:
    """One row for each chain; where there are very many, those with something to say and the first others."""
    rows = health.rows()
    used = [name for name in _COLUMNS if any(getattr(row.record, name) is not None for row in rows)]
    odd = [row for row in rows if row.verdict != "healthy"]
    others = [row for row in rows if row.verdict == "healthy"]
    chosen = sorted((odd + others)[:_MOST_ROWS])
    title = "Health of the chains" if len(chosen) == len(rows) else f"Health of {len(chosen)} of {len(rows)} chains"
    cells = tuple((str(row.chain), *(_cell(row.record, name) for name in used), row.verdict) for row in chosen)
    return Table(title, ("chain", *(_COLUMNS[name] for name in used), "verdict"), cells)


def convergence_table(diagnostics: Diagnostics) -> Table:
    """The worst R̂ and the least effective sample sizes, with what they mean."""
    all_draws = diagnostics.num_chains * diagnostics.num_draws
    rows = [
        ("worst R̂ of the functions", shown(diagnostics.worst_rhat), rhat_verdict(diagnostics.worst_rhat)),
        ("R̂ of the log density", shown(float(diagnostics.log_density.rhat)), ""),
        ("least effective sample size", shown(round(diagnostics.least_bulk_ess)), _ess_verdict(diagnostics)),
        ("the same, of the tails", shown(round(diagnostics.least_tail_ess)), f"of {counted(all_draws, 'draw')}"),
    ]
    if diagnostics.ess_per_second is not None:
        rows.append(("effective draws a second", shown(diagnostics.ess_per_second), "warm-up included"))
    return Table("Do the chains agree?", ("measure", "value", "what it says"), tuple(rows))


def rhat_verdict(rhat: float) -> str:
    """What an R̂ says, and what to do."""
    if math.isnan(rhat):
        return "not known: nothing changed along the chains"
    if rhat <= GOOD_RHAT:
        return "the chains agree"
    if rhat <= POOR_RHAT:
        return "nearly there: more draws would help"
    return "the chains do not agree: warm up and run for longer, or start from an ensemble"


def _ess_verdict(diagnostics: Diagnostics) -> str:
    if diagnostics.least_bulk_ess >= ENOUGH_ESS:
        return f"enough: at least {ENOUGH_ESS}"
    return f"fewer than the {ENOUGH_ESS} that intervals ask for: more draws would help"


def _cell(record: ChainRecord, name: str) -> str:
    value = getattr(record, name)
    if value is None:
        return "–"
    return percent(value) if name == "moved" else shown(value)
