"""`weightscape predict`: predictions with error bars for the rows of a CSV file."""

from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from weightscape.cli.forecast import forecast
from weightscape.cli.new_rows import NewRows, read_rows
from weightscape.cli.options import Quiet, RunFolder
from weightscape.cli.run_folder import Run, read_draws, read_run
from weightscape.cli.screen import Screen
from weightscape.core.checks import require
from weightscape.core.files import write_text
from weightscape.predictive import Predictive
from weightscape.report import Table
from weightscape.report.numbers import counted, shown

_LEVEL = 0.9
_SHOWN_ROWS = 5

RowsFile = Annotated[Path, typer.Argument(metavar="ROWS.CSV", help="New rows, with the input columns of training.")]
OutFile = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Default: pred.csv beside ROWS.CSV.")]


def predict(run: RunFolder, rows: RowsFile, out: OutFile = None, quiet: Quiet = False) -> None:
    """Predict new rows with a fitted run, and write a CSV file.

    Columns: `row` (the line in ROWS.CSV, the header being line 1); for numbers `mean`, `std`, `epistemic_std` and the
    90 % interval `lower`, `upper`; for classes `prediction`, `probability_<class>`, `entropy` and
    `mutual_information`; then `outside` and `outside_reason` for rows unlike those of training.
    """
    screen, file = Screen(quiet), out or rows.parent / "pred.csv"
    require(not file.is_dir(), f"`{file}` must be a file", "a folder", "Pass `--out FILE.csv`.")
    same = file.exists() and rows.exists() and file.samefile(rows)
    require(not same, "`--out` must not be the file of new rows", f"`{file}`", "Choose another name.")
    record = read_run(run)
    draws = read_draws(run)
    new = read_rows(rows, record)
    table = prediction_table(record, forecast(run, draws).at(new.x), new)
    write_text(file, table.to_csv(index=False))
    if not draws.facts.get("complete", True):
        screen.say(f"The run was stopped early: these predictions use the {counted(len(draws), 'draw')} it made.")
    screen.show(_preview(table))
    screen.say(_outside(table, file))
    screen.path(file)


def prediction_table(run: Run, predictive: Predictive, new: NewRows) -> pd.DataFrame:
    """Predictions with one line for each row, in the order of the rows."""
    columns = _numbers(predictive) if run.task == "regression" else _classes(predictive, run.classes or ())
    outside = np.where(np.asarray(run.training_range.outside(new.x)), "true", "false")
    reasons = run.training_range.reasons(new.x)
    return pd.DataFrame({"row": new.lines, **columns, "outside": outside, "outside_reason": reasons})


def _numbers(predictive: Predictive) -> dict[str, np.ndarray]:
    lower, upper = predictive.interval(_LEVEL)
    columns = {"mean": predictive.mean, "std": predictive.std, "epistemic_std": predictive.epistemic_std}
    return {name: np.asarray(values) for name, values in {**columns, "lower": lower, "upper": upper}.items()}


def _classes(predictive: Predictive, classes: tuple[str, ...]) -> dict[str, np.ndarray]:
    probabilities = np.asarray(predictive.probabilities)
    names = np.array(classes, dtype=object)[probabilities.argmax(axis=1)]
    by_class = {f"probability_{name}": probabilities[:, i] for i, name in enumerate(classes)}
    entropy, mutual_information = np.asarray(predictive.entropy), np.asarray(predictive.mutual_information)
    return {"prediction": names, **by_class, "entropy": entropy, "mutual_information": mutual_information}


def _preview(table: pd.DataFrame) -> Table:
    shown_columns = [name for name in table.columns if name != "outside_reason"][:8]
    first = table[shown_columns].head(_SHOWN_ROWS)
    rows = tuple(tuple(_cell(cell) for cell in row) for row in first.itertuples(index=False))
    title = f"{counted(len(table), 'prediction')}, the first {len(first)}"
    return Table(title, tuple(shown_columns), rows)


def _cell(cell: object) -> str:
    return shown(float(cell)) if isinstance(cell, (float, np.floating)) else str(cell)


def _outside(table: pd.DataFrame, file: Path) -> str:
    outside = table[table["outside"] == "true"]
    if outside.empty:
        return f"All rows lie within the range of training. Written to {file.name}:"
    first = outside.iloc[0]
    rows = counted(len(outside), "row")
    return f"{rows} outside what training saw; the first, row {first['row']}: {first['outside_reason']}. Written to:"
