"""A comparison of methods as a table, and in sentences."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from weightscape.evaluate import Compared
from weightscape.report.numbers import duration, percent, score_name, shown
from weightscape.report.report import Table
from weightscape.report.style import shortened

_LEFT_OUT = ("brier",)
"""Scores that `result.json` has and the table has no room for."""

_BRIEF = ("accuracy", "rmse", "nll", "ece", "coverage_90")
_MOST_OF_A_NOTE = 60
_LARGEST_RHAT = 1.05


class Entry(NamedTuple):
    """A row of the table.

    - `compared`: its scores and distances; None where it failed.
    - `seconds`, `num_gradients`, `num_bytes`: its cost, where known.
    - `notes`: what a reader should know, the reason of a failure first.
    """

    compared: Compared | None
    seconds: float | None = None
    num_gradients: float | None = None
    num_bytes: int | None = None
    notes: tuple[str, ...] = ()


class Reference(NamedTuple):
    """What the others are compared with: its name, what two halves of it are apart, and its R̂ in function space."""

    name: str
    halves: Mapping[str, float] | None = None
    rhat: float | None = None


def compared_table(title: str, entries: Mapping[str, Entry]) -> Table:
    """One row for each method: scores with their errors, nearness to the reference, cost."""
    found = [entry.compared for entry in entries.values() if entry.compared is not None]
    scores = [name for name in dict.fromkeys(name for one in found for name in one.scores) if name not in _LEFT_OUT]
    near = list(dict.fromkeys(name for one in found for name in one.nearness))
    has_notes = any(entry.notes for entry in entries.values())
    columns = ["method", *(score_name(name) for name in scores), *near, "seconds", "gradients", "memory"]
    rows = [
        (name, *_scored(entry.compared, scores, near), *_cost(entry), *([_note(entry)] if has_notes else []))
        for name, entry in entries.items()
    ]
    return Table(title, (*columns, *(["note"] if has_notes else [])), tuple(rows))


def brief_table(title: str, entries: Mapping[str, Entry]) -> Table:
    """The same for a narrow terminal: no errors, no notes, and of the cost the seconds alone."""
    found = [entry.compared for entry in entries.values() if entry.compared is not None]
    scores = [name for name in dict.fromkeys(name for one in found for name in one.scores) if name in _BRIEF]
    near = list(dict.fromkeys(name for one in found for name in one.nearness))
    far = lambda one, name: _distance(one.nearness[name]) if name in one.nearness else "–"
    told = lambda one: [shown(one.scores[name]) for name in scores] + [far(one, name) for name in near]
    rows = tuple(
        (name, *(["–"] * len(scores + near) if entry.compared is None else told(entry.compared)), _cost(entry)[0])
        for name, entry in entries.items()
    )
    return Table(title, ("method", *(score_name(name) for name in scores), *near, "seconds"), rows)


def compared_finding(entries: Mapping[str, Entry], reference: Reference | None) -> str:
    """Which method comes nearest to the reference, which predicts best, and what to be careful about."""
    sentences = [] if reference is None else [_nearest(entries, reference), _caution(reference)]
    return " ".join(sentence for sentence in (*sentences, _best(entries), _failed(entries)) if sentence)


def rhat_note(rhat: float | None) -> str:
    """What to say of chains that have not come to agree; nothing of others."""
    return f"chains do not agree: R̂ {rhat:.2f}" if rhat is not None and rhat > _LARGEST_RHAT else ""


def nearness_name(entries: Mapping[str, Entry]) -> str | None:
    """The distance that methods are ranked by: total variation, or W1; None without a reference."""
    for entry in entries.values():
        if entry.compared is not None and entry.compared.nearness:
            return "total variation" if "total variation" in entry.compared.nearness else "W1"
    return None


def _scored(compared: Compared | None, scores: Sequence[str], near: Sequence[str]) -> list[str]:
    if compared is None:
        return ["–"] * (len(scores) + len(near))
    errors = compared.scores.errors
    cells = [f"{shown(compared.scores[name])} ± {errors[name]:.2g}" for name in scores]
    return [*cells, *(_distance(compared.nearness[name]) if name in compared.nearness else "–" for name in near)]


def _cost(entry: Entry) -> tuple[str, str, str]:
    seconds = "–" if entry.seconds is None else f"{entry.seconds:.1f}"
    gradients = "–" if entry.num_gradients is None else shown(round(entry.num_gradients))
    return seconds, gradients, "–" if entry.num_bytes is None else _bytes(entry.num_bytes)


def _bytes(number: int) -> str:
    return f"{number / 1e6:.1f} MB" if number >= 100_000 else f"{number / 1e3:.1f} kB"


def _distance(value: float) -> str:
    """Small ones are mostly noise, so that two digits are enough."""
    return shown(value) if value >= 0.01 else f"{value:.2g}"


def _note(entry: Entry) -> str:
    return shortened("; ".join(entry.notes), _MOST_OF_A_NOTE) or "–"


def _nearest(entries: Mapping[str, Entry], reference: Reference) -> str:
    measure = nearness_name(entries)
    near = {name: one.compared.nearness for name, one in entries.items() if one.compared and one.compared.nearness}
    if measure is None or not near:
        return ""
    name = min(near, key=lambda each: near[each][measure])
    same = f" and the same class for {percent(near[name]['agreement'])}" if "agreement" in near[name] else ""
    told = f"Nearest to {reference.name} is {name}, with {measure} {_distance(near[name][measure])}{same}"
    times = [entries[each].seconds for each in (name, reference.name)]
    if None not in times:
        told += f", in {duration(times[0] or 0)} against {duration(times[1] or 0)}"
    if reference.halves is not None:
        told += f"; two halves of {reference.name} are {_distance(reference.halves[measure])} apart"
    return f"{told}."


def _caution(reference: Reference) -> str:
    if reference.rhat is None or reference.rhat <= _LARGEST_RHAT:
        return ""
    told = f"The chains of {reference.name} do not agree (R̂ {reference.rhat:.2f} in function space)"
    return f"{told}: distances to it mean little until they do."


def _best(entries: Mapping[str, Entry]) -> str:
    found = {name: entry.compared for name, entry in entries.items() if entry.compared is not None}
    best = next((name for name, one in found.items() if one.behind is None), None)
    if best is None:
        return ""
    close = [name for name, one in found.items() if name != best and not one.is_clearly_behind]
    scores = found[best].scores
    told = f"{best} has the smallest NLL, {shown(scores['nll'])} ± {scores.errors['nll']:.2g}"
    return f"{told}; {', '.join(close)} cannot be told from it." if close else f"{told}, clearly."


def _failed(entries: Mapping[str, Entry]) -> str:
    names = [name for name, entry in entries.items() if entry.compared is None]
    return f"Failed: {', '.join(names)}." if names else ""
