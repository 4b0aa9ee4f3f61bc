"""TableSchema: what was learned about the columns of a table, so that new rows are read the same way.

A schema is plain data: it is stored beside the weights and turns a new file into inputs at prediction time.
"""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float, Shaped

from weightscape.core.checks import require, require_known
from weightscape.core.config import registered
from weightscape.data.column import (
    Column,
    infer_column,
    infer_kind,
    is_number,
    parse_numbers,
    require_present,
)
from weightscape.data.reading import read_table
from weightscape.data.scaling import TASKS

_MOST_CLASSES = 20
_ROWS_FOR_EACH_CLASS = 10


@registered("data.TableSchema")
@dataclasses.dataclass(frozen=True)
class TableSchema:
    """The columns of a table and its target.

    Arguments:
        columns: the input columns in order.
        target: name of the target column.
        task: "regression" or "classification".
        classes: names of the labels 0, 1, … in order; None for regression.

    """

    columns: tuple[Column, ...]
    target: str
    task: str
    classes: tuple[str, ...] | None = None

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs, one for each column of `encode`."""
        return tuple(name for column in self.columns for name in column.input_names)

    def encode(self, source: str | Path | pd.DataFrame) -> Float[np.ndarray, "point input"]:
        """Inputs from a CSV file or a frame in original units; other columns and the target are ignored."""
        table = read_table(source)
        return np.concatenate([column.encode(_column(table, column.name)) for column in self.columns], axis=1)

    def encode_target(self, source: str | Path | pd.DataFrame) -> Shaped[np.ndarray, " point"]:
        """Targets from a CSV file or a frame: numbers, or the number of each label."""
        table = read_table(source)
        texts = _column(table, self.target)
        require_present(texts)
        return parse_numbers(texts) if self.classes is None else _label_codes(texts, self.classes)


def infer_schema(table: pd.DataFrame, target: str, task: str | None, ignore: tuple[str, ...]) -> TableSchema:
    """Learn a schema from a table of text; `task=None` guesses (see `guess_task`)."""
    for name in ignore:
        _column(table, name)
    texts = _column(table, target)
    names = [name for name in table.columns if name != target and name not in ignore]
    asked = "A table must have at least one input column"
    require(len(names) > 0, asked, f"{target!r} alone", "Add columns.")
    require_present(texts)
    task = guess_task(texts) if task is None else task
    require_known("`task`", task, TASKS)
    columns = tuple(infer_column(_column(table, name)) for name in names)
    if task == "classification":
        return TableSchema(columns, target, task, _find_classes(texts))
    _require_varied_target(texts)
    return TableSchema(columns, target, task)


def guess_task(texts: pd.Series) -> str:
    """Classification for text, booleans, or few whole numbers; regression otherwise.

    Few means two distinct values, or at most 20 with ten rows for each on average.
    """
    if infer_kind(texts) != "number":
        return "classification"
    numbers = parse_numbers(texts)
    num_values = len(np.unique(numbers))
    often = num_values * _ROWS_FOR_EACH_CLASS <= len(numbers)
    few = num_values == 2 or (num_values <= _MOST_CLASSES and often)
    return "classification" if few and np.all(numbers == np.round(numbers)) else "regression"


def _find_classes(texts: pd.Series) -> tuple[str, ...]:
    labels = set(_label_texts(texts, numeric=_all_numbers(texts)))
    asked = f"Column {texts.name!r} must have at least two classes"
    require(len(labels) > 1, asked, f"{texts.iloc[0]!r} in every row", "Choose another target or add rows.")
    return tuple(sorted(labels, key=float if _all_numbers(texts) else str))


def _label_codes(texts: pd.Series, classes: tuple[str, ...]) -> np.ndarray:
    labels = _label_texts(texts, numeric=_all_numbers(pd.Series(classes)))
    numbers = {name: i for i, name in enumerate(classes)}
    unseen = [i for i, label in enumerate(labels) if label not in numbers]
    came = f"{labels[unseen[0]]!r} in row {texts.index[unseen[0]]}" if unseen else ""
    asked = f"Column {texts.name!r} must hold classes known from training"
    require(not unseen, asked, came, f"Known: {', '.join(classes[:20])}.")
    return np.array([numbers[label] for label in labels], np.int32)


def _label_texts(texts: pd.Series, *, numeric: bool) -> list[str]:
    """One spelling for each label: 1, 1.0 and 01 are the same number, True and true the same boolean."""
    if numeric:
        return [repr(int(n) if n == int(n) else float(n)) for n in parse_numbers(texts)]
    return list(texts.str.lower()) if infer_kind(texts) == "boolean" else list(texts)


def _all_numbers(texts: pd.Series) -> bool:
    return bool(np.all(is_number(texts)))


def _require_varied_target(texts: pd.Series) -> None:
    numbers = parse_numbers(texts)
    asked = f"Column {texts.name!r} must vary to be a regression target"
    require(len(np.unique(numbers)) > 1, asked, f"{texts.iloc[0]!r} in every row", "Choose another target.")


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    require_known("A column", name, [str(column) for column in table.columns])
    return pd.Series(table[name], name=name)
