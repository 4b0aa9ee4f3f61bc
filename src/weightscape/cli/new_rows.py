"""New rows of a CSV file as the inputs of a fitted run."""

from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import pandas as pd
from jaxtyping import Array, Float

from weightscape.cli.run_folder import Run
from weightscape.core.checks import InputError, require
from weightscape.data import TableSchema
from weightscape.data.column import Column, is_number
from weightscape.data.reading import read_table


class NewRows(NamedTuple):
    """Inputs in original units, and the line of the file that each came from."""

    x: Float[Array, "point input"]
    lines: list[Any]


def read_rows(path: Path, run: Run) -> NewRows:
    """Read rows with the columns of training; errors name the column and the row."""
    table = read_table(path)
    schema = run.schema or _plain_schema(table, path, run)
    x = jnp.asarray(schema.encode(table), jnp.result_type(float))
    return NewRows(x, list(table.index))


def _plain_schema(table: pd.DataFrame, path: Path, run: Run) -> TableSchema:
    """Number columns with the names of training, or as many columns in the same order under other names."""
    columns = [str(name) for name in table.columns]
    names = list(run.inputs) if set(run.inputs) <= set(columns) and run.inputs else columns
    headless = bool(is_number(pd.Series(columns, dtype=object)).all())
    require(not headless, f"`{path}` must begin with the names of its columns", "numbers", "Add a header line.")
    wanted = run.training_range.low.size
    if len(names) != wanted:
        listed = ", ".join(run.inputs[:8]) + (", …" if len(run.inputs) > 8 else "")
        raise InputError(
            f"`{path}` must have the {wanted} input columns of training, got {len(columns)} columns. Columns: {listed}."
        )
    return TableSchema(tuple(Column(name, "number") for name in names), run.target, run.task)
