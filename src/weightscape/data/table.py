"""Tables: a dataset straight from a CSV file."""

from pathlib import Path

from weightscape.data.dataset import Dataset, scaled_parts
from weightscape.data.reading import read_table
from weightscape.data.schema import infer_schema
from weightscape.data.split import split_rows


def from_csv(
    path: str | Path,
    target: str,
    task: str | None = None,
    test_fraction: float = 0.2,
    seed: int = 0,
    *,
    ignore: tuple[str, ...] = (),
) -> Dataset:
    """A dataset from a CSV file with a header line.

    Number columns stay, true and false become 1 and 0, and text becomes one column of zeros and ones for each
    value. Nothing is repaired: a cell that is missing or does not fit is an error that names its column and
    its row, which is the line in the file with the header as line 1.

    Arguments:
        path: the file; cells are separated by commas, semicolons or tabs.
        target: name of the column to predict.
        task: "regression" or "classification"; None takes text, booleans and few whole numbers (two distinct
            ones, or at most 20 with ten rows for each on average) as classes, anything else as regression.
        test_fraction: share of the rows set aside, with the same class proportions where there are classes.
        seed: fixes the shuffle.
        ignore: columns to leave out, such as identifiers.

    """
    table = read_table(path)
    schema = infer_schema(table, target, task, tuple(ignore))
    x, y = schema.encode(table), schema.encode_target(table)
    labels = y if schema.classes is not None else None
    train, test = split_rows(len(x), test_fraction, seed, labels=labels)
    parts = scaled_parts((x[train], y[train]), (x[test], y[test]), schema.task)
    name, inputs = Path(path).stem, schema.input_names
    return Dataset(name, schema.task, *parts, inputs, target, schema.classes, schema)
