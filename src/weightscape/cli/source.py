"""Where the rows come from: a CSV file, or a data set with a name."""

from pathlib import Path
from typing import Any, NamedTuple

from weightscape import data
from weightscape.core import InputError
from weightscape.core.checks import require, require_known
from weightscape.data import Dataset
from weightscape.data.reading import read_table


class Request(NamedTuple):
    """What the user asked for: a path or a name, and how to read and split it."""

    source: str
    target: str | None = None
    task: str | None = None
    ignore: tuple[str, ...] = ()
    test_fraction: float = 0.2
    seed: int = 0


def load_source(request: Request) -> Dataset:
    """The data set behind a path or a name."""
    if _is_file(request.source):
        return _from_file(request)
    known = {description.name: description for description in data.describe()}
    if request.source not in known:
        _refuse_unknown(request.source)
    for option, given in (("--target", request.target), ("--task", request.task), ("--ignore", request.ignore)):
        asked = f"`{option}` must go with a CSV file"
        require(not given, asked, f"the data set {request.source!r}", "Leave it out; the data set knows its own.")
    description = known[request.source]
    options: dict[str, Any] = {"seed": request.seed} if description.source in ("made here", "scikit-learn") else {}
    if description.source == "scikit-learn":
        options["test_fraction"] = request.test_fraction
    if "×" in description.inputs:
        options["flatten"] = True
    return data.load(request.source, **options)


def _from_file(request: Request) -> Dataset:
    if request.target is None:
        columns = ", ".join(str(name) for name in read_table(request.source).columns)
        raise InputError(f"`--target` must name the column to predict, got nothing. Columns: {columns}.")
    return data.from_csv(
        request.source, request.target, request.task, request.test_fraction, request.seed, ignore=request.ignore
    )


def _is_file(source: str) -> bool:
    return Path(source).suffix != "" or "/" in source or "\\" in source or Path(source).exists()


def _refuse_unknown(source: str) -> None:
    require_known("DATA, where it is not a CSV file,", source, data.names())
