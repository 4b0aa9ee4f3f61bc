"""`weightscape data`: which data sets have a name, and what is in them."""

from typing import Annotated, Any

import numpy as np
import typer

from weightscape import data as catalogue
from weightscape.cli.options import OutFolder, Quiet, Seed
from weightscape.cli.run_folder import RESULT
from weightscape.cli.screen import Screen
from weightscape.cli.source import Request, load_source
from weightscape.core.files import write_json
from weightscape.data import Dataset
from weightscape.report import Table
from weightscape.report.numbers import counted, shown

_MOST_COLUMNS = 20
_FIRST_ROWS = 3

Name = Annotated[str | None, typer.Argument(metavar="[NAME]", help="A data set to look into.")]


def data(name: Name = None, seed: Seed = 0, out: OutFolder = None, quiet: Quiet = False) -> None:
    """List the known data sets, or show what is in one."""
    screen = Screen(quiet)
    if name is None:
        screen.show(_catalogue_table())
        result: dict[str, Any] = {"datasets": [description._asdict() for description in catalogue.describe()]}
    else:
        dataset = load_source(Request(name, seed=seed))
        _show(screen, dataset)
        result = _details(dataset)
    if out is not None:
        write_json(out / RESULT, {"command": "data", **result})
        screen.path(out / RESULT)


def _catalogue_table() -> Table:
    rows = tuple(tuple(str(cell) for cell in description) for description in catalogue.describe())
    return Table("Data sets that `weightscape fit NAME` knows", ("name", "task", "rows", "inputs", "source"), rows)


def _show(screen: Screen, dataset: Dataset) -> None:
    rows = f"{counted(len(dataset.train), 'training row')} and {counted(len(dataset.test), 'test row')}"
    screen.say(f"{dataset.name}: {dataset.task} of `{dataset.target}`, {rows}.")
    if dataset.classes:
        screen.say(f"Classes: {', '.join(dataset.classes)}.")
    screen.show(_column_table(dataset))


def _column_table(dataset: Dataset) -> Table:
    """One line for each column: its range in the training part, and its first values; the target comes last."""
    columns = dict(zip(_input_names(dataset), _flat(dataset).T, strict=True))
    chosen = dict(list(columns.items())[:_MOST_COLUMNS]) | {dataset.target: np.asarray(dataset.train.y)}
    rows = tuple(_column_row(name, values) for name, values in chosen.items())
    hidden = len(columns) - _MOST_COLUMNS
    title = "Columns" if hidden <= 0 else f"Columns (the first {_MOST_COLUMNS} of {len(columns)}, and the target)"
    first = tuple(f"row {i + 1}" for i in range(_FIRST_ROWS))
    return Table(title, ("column", "lowest", "highest", *first), rows)


def _column_row(name: str, values: np.ndarray) -> tuple[str, ...]:
    numbers = (values.min(), values.max(), *values[:_FIRST_ROWS])
    return (name, *(shown(number.item()) for number in numbers))


def _details(dataset: Dataset) -> dict[str, Any]:
    return {
        "name": dataset.name,
        "task": dataset.task,
        "target": dataset.target,
        "classes": dataset.classes,
        "inputs": list(_input_names(dataset)),
        "rows": {"train": len(dataset.train), "test": len(dataset.test)},
    }


def _flat(dataset: Dataset) -> np.ndarray:
    return np.asarray(dataset.train.x).reshape(len(dataset.train), -1)


def _input_names(dataset: Dataset) -> tuple[str, ...]:
    return dataset.inputs or tuple(f"x{i}" for i in range(_flat(dataset).shape[1]))
