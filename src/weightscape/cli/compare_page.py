"""What a comparison found, and the files that say so: `result.json`, three tables, a page.

table.txt, table.md, table.tex     the same table for a log, a document, a paper
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import ArrayLike

from weightscape.cli.compare_pictures import compare_pictures
from weightscape.cli.contender import Result
from weightscape.cli.contenders import Asked, Outcome
from weightscape.cli.finish import finite
from weightscape.cli.result_folder import write_result
from weightscape.core.files import write_text
from weightscape.data import Dataset
from weightscape.evaluate import compare_predictions, halves_nearness
from weightscape.evaluate.table_text import latex_table, markdown_table, text_table
from weightscape.inference import LINEARISED
from weightscape.posterior import Model
from weightscape.report import (
    Entry,
    Picture,
    Reference,
    Report,
    Table,
    brief_table,
    compared_finding,
    compared_table,
)
from weightscape.report.describe import described
from weightscape.report.numbers import counted

_SCORE_KEY = 1_000_039
"""Folded into the key for the bootstrap, so that it shares no randomness with the methods."""

_TABLES = {"table.txt": text_table, "table.md": markdown_table, "table.tex": latex_table}
_LEGEND = (
    "± is the bootstrap standard error of a score over test rows. Seconds are wall-clock time, compilation included; "
    "gradients those of all training rows that the settings ask for; memory the bytes that a prediction needs."
)


class Comparison(NamedTuple):
    """The rows by name, the reference, the table (`brief` for a terminal), what it says in words, and pictures."""

    entries: dict[str, Entry]
    reference: Reference | None
    table: Table
    brief: Table
    finding: str
    pictures: tuple[Picture, ...]


def scorable(outcome: Outcome, y: ArrayLike) -> Outcome:
    """The outcome with those results among the failures that call what came impossible: their NLL has no end."""
    surprised = {
        name: int(np.sum(~np.isfinite(np.asarray(result.test.log_density(y)))))
        for name, result in outcome.results.items()
    }
    failures = {name: f"{counted(rows, 'test row')} with probability 0" for name, rows in surprised.items() if rows}
    kept = {name: result for name, result in outcome.results.items() if name not in failures}
    return Outcome(kept, outcome.failures | failures)


def judge(dataset: Dataset, names: Iterable[str], outcome: Outcome, reference: str | None, seed: int) -> Comparison:
    """Score all results, in the order of `names`; a reference that failed is none."""
    results, failures = outcome
    chosen = reference if reference in results else None
    key = jax.random.fold_in(jax.random.key(seed), _SCORE_KEY)
    predictions = {name: result.test for name, result in results.items()}
    found = compare_predictions(key, predictions, dataset.test.y, reference=chosen) if results else {}
    cost = lambda one: (one.seconds, one.num_gradients, one.num_bytes, one.notes)
    entries = {
        name: Entry(found[name], *cost(results[name]))
        if name in results
        else Entry(None, notes=(f"failed: {failures[name]}",))
        for name in names
    }
    held = None if chosen is None else _reference(chosen, results[chosen], dataset)
    title = f"{dataset.name}: {counted(len(entries), 'contender')} on the test rows"
    tables = compared_table(title, entries), brief_table(title, entries)
    pictures = tuple(compare_pictures(dataset, results, entries, held))
    return Comparison(entries, held, *tables, compared_finding(entries, held), pictures)


def write_comparison(folder: Path, comparison: Comparison, dataset: Dataset, model: Model, asked: Asked) -> Path:
    """Write the tables, the result and the page, and return the path of the page."""
    for name, lay_out in _TABLES.items():
        write_text(folder / name, lay_out(comparison.table.columns, comparison.table.rows) + "\n")
    title = f"{len(comparison.entries)} methods on {dataset.name}"
    settings = _settings(comparison, dataset, model, asked)
    report = Report(title, comparison.finding, (comparison.table,), comparison.pictures, settings)
    return write_result(folder, "compare", _result(comparison, dataset, asked), report)


def _reference(name: str, result: Result, dataset: Dataset) -> Reference:
    """The reference with what is known of its own error; predictions that are not by draws have no halves."""
    draws = result.draws
    if draws is None or draws.facts.get(LINEARISED, False):
        return Reference(name)
    return Reference(name, halves_nearness(draws, np.asarray(dataset.test.x)), result.rhat)


def _settings(comparison: Comparison, dataset: Dataset, model: Model, asked: Asked) -> dict[str, str]:
    reference = comparison.reference
    rhat = "" if reference is None or reference.rhat is None else f", R̂ in function space {reference.rhat:.3f}"
    notes = {f"note on {name}": "; ".join(entry.notes) for name, entry in comparison.entries.items() if entry.notes}
    return {
        "data": str(dataset),
        "network": described(model.network),
        "prior of the weights": described(model.prior),
        "reference": "none" if reference is None else f"{reference.name}{rhat}",
        "settings that were given": ", ".join(asked.settings) or "none",
        "seed": str(asked.seed),
        "tempering": "none: the posterior itself",
        "columns": _LEGEND,
        **notes,
    }


def _result(comparison: Comparison, dataset: Dataset, asked: Asked) -> dict[str, Any]:
    reference = comparison.reference
    return {
        "data": {"name": dataset.name, "source": asked.source, "task": dataset.task, "target": dataset.target},
        "rows": {"train": len(dataset.train), "test": len(dataset.test)},
        "seed": asked.seed,
        "settings": list(asked.settings),
        "reference": None if reference is None else _reference_result(reference),
        "methods": {name: _entry_result(entry) for name, entry in comparison.entries.items()},
        "finding": comparison.finding,
    }


def _reference_result(reference: Reference) -> dict[str, Any]:
    halves = None if reference.halves is None else dict(reference.halves)
    return {"name": reference.name, "rhat": reference.rhat, "halves": halves}


def _entry_result(entry: Entry) -> dict[str, Any]:
    compared, cost = entry.compared, {**entry._asdict(), "notes": list(entry.notes)}
    del cost["compared"]
    if compared is None:
        return {"failed": True, **cost}
    behind = None if compared.behind is None else finite(compared.behind._asdict())
    return {
        "failed": False,
        "scores": finite(dict(compared.scores)),
        "standard_errors": finite(compared.scores.errors),
        "nearness": finite(dict(compared.nearness)),
        "nll_behind_best": behind,
        **cost,
    }
