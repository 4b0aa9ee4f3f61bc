"""Which model each method prefers, in sentences."""

from collections.abc import Sequence

from weightscape.evaluate import EvidenceRow
from weightscape.evaluate.evidence_choice import Preference, preferences
from weightscape.report.numbers import counted

_BASIS = {"lower bound": ", by its lower bound,", "weighed": ", by its weights,"}


def evidence_finding(rows: Sequence[EvidenceRow]) -> str:
    """One clause for each method: the best model and its lead, or why there is none."""
    return "; ".join(_clause(each) for each in preferences(rows)) + "."


def _clause(preference: Preference) -> str:
    method, ranked, doubtful = preference
    if not ranked:
        return f"{method} has no value that can be trusted" if doubtful else f"{method} has no evidence"
    best = ranked[0]
    basis = _BASIS.get(best.verdict.kind, "") if best.verdict else ""
    if preference.is_clear:
        told = f"{method}{basis} prefers {best.model}{_lead(preference)}"
    else:
        told = f"{method}{basis} cannot tell {best.model} from {ranked[1].model}"
    if not doubtful:
        return told
    names = ", ".join(row.model for row in doubtful)
    return f"{told} ({counted(len(doubtful), 'model')} left out, whose weights cannot be trusted: {names})"


def _lead(preference: Preference) -> str:
    if preference.lead is None:
        return ""
    value, error = preference.lead
    return f" by {value:.2f} ± {error:.2g} nats" if error else f" by {value:.2f} nats"
