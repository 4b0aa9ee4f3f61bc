"""A table of scores, one row for each method, in Markdown."""

from collections.abc import Mapping

from weightscape.core.checks import require
from weightscape.evaluate.resampling import Measured
from weightscape.evaluate.scores import Scores
from weightscape.evaluate.table_text import markdown_table

_MISSING = "–"


def comparison_table(rows: Mapping[str, Mapping[str, float]]) -> str:
    """Rows of scores as a Markdown table; columns in order of first appearance, a dash where a score is missing.

    `Scores` that know their standard errors, as `score_errors` finds them, show them.

    Example:
    >>> known = Scores({"accuracy": 0.9, "nll": 0.25}, errors={"nll": 0.03})
    >>> print(comparison_table({"HMC": {"accuracy": 0.9667}, "MAP": known}))
    | method | accuracy |         nll |
    |:-------|---------:|------------:|
    | HMC    |   0.9667 |           – |
    | MAP    |      0.9 | 0.25 ± 0.03 |
    """
    require(len(rows) > 0, "`rows` of comparison_table must hold at least one row", 0, "Pass {name: scores}.")
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    return markdown_table(
        ["method", *columns], [[name, *(_cell(row, column) for column in columns)] for name, row in rows.items()]
    )


def _cell(row: Mapping[str, float], column: str) -> str:
    if column not in row:
        return _MISSING
    errors = row.errors if isinstance(row, Scores) else {}
    return str(Measured(row[column], errors[column])) if column in errors else f"{row[column]:.4g}"
