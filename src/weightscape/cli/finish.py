"""The end of a run: scores on the test rows, `result.json` and the report, from the folder alone."""

import math
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import weightscape
from weightscape.cli.forecast import forecast
from weightscape.cli.run_folder import RESULT, Run, read_dataset, read_draws
from weightscape.core.files import write_json
from weightscape.data import Dataset
from weightscape.draws import Draws
from weightscape.evaluate import scores
from weightscape.report import Fitted, Table, report_run, score_table, write_report
from weightscape.report.describe import describe_count
from weightscape.report.numbers import counted

_PICTURE_KEY = 1_000_003
"""Folded into the run's key for what a picture draws, so that it shares no randomness with the method."""


class Finished(NamedTuple):
    """How many draws there were, the health of their chains, the scores as a table, and the page."""

    num_draws: str
    health: str
    table: Table
    page: Path


def finish_run(folder: Path, run: Run, out: Path) -> Finished:
    """Score the run in `folder`, and write its result and its report to `out`."""
    draws = read_draws(folder)
    dataset = read_dataset(folder, run, draws.scaling)
    predict_at, how = forecast(folder, draws)
    predictive = predict_at(dataset.test.x)
    fitted = Fitted(draws, dataset, predictive, plain_scores(scores(predictive, dataset.test.y)), predict_at)
    write_json(out / RESULT, {**_result(run, fitted), "predictions": how})
    key = jax.random.fold_in(jax.random.key(run.seed), _PICTURE_KEY)
    page = write_report(report_run(key, fitted, {**_settings(run, dataset), "predictions": how}), out)
    table = score_table(f"{dataset.name}: scores on the test rows", fitted.scores)
    return Finished(describe_count(draws), str(draws.health), table, page)


def plain_scores(found: Any) -> dict[str, float]:
    """Scores as plain numbers."""
    return {name: float(np.asarray(value)) for name, value in dict(found).items()}


def finite(values: dict[str, float]) -> dict[str, float | None]:
    """Numbers for JSON, which has no infinity: null where a number is not finite."""
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def _result(run: Run, fitted: Fitted) -> dict[str, Any]:
    draws = fitted.draws
    return {
        "command": "fit",
        "version": weightscape.__version__,
        "data": {"name": run.name, "source": run.source, "task": run.task, "target": run.target},
        "rows": {"train": len(fitted.dataset.train), "test": len(fitted.dataset.test)},
        "scores": finite(dict(fitted.scores)),
        "draws": _draws_result(draws),
        "seed": run.seed,
        "settings": run.settings,
    }


def _draws_result(draws: Draws) -> dict[str, Any]:
    facts = draws.facts
    left_out = [{"chain": chain, "reason": reason} for chain, reason in draws.health.left_out]
    return {
        "method": facts.get("method"),
        "settings": facts.get("settings"),
        "complete": facts.get("complete"),
        "log_evidence": facts.get("log_evidence"),
        "seconds": facts.get("seconds"),
        "chains": draws.num_chains,
        "draws": draws.num_draws,
        "chains_left_out": left_out,
        "chains_flagged": [{"chain": chain, "reason": reason} for chain, reason in draws.health.flagged],
    }


def _settings(run: Run, dataset: Dataset) -> dict[str, str]:
    rows = f"{counted(len(dataset.train), 'training row')}, {counted(len(dataset.test), 'test row')}"
    inputs = counted(math.prod(dataset.train.x.shape[1:]), "input")
    data = {"data": f"{run.name} ({run.source})", "target": run.target, "size": f"{rows}, {inputs}"}
    return {**data, **run.settings, "seed": str(run.seed), "tempering": "none: the posterior itself"}
