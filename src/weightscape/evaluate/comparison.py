"""A table of scores, one row for each method, in Markdown."""

from collections.abc import Mapping, Sequence

from weightscape.core.checks import require

_MISSING = "–"


def comparison_table(rows: Mapping[str, Mapping[str, float]]) -> str:
    """Rows of scores as a Markdown table; columns in order of first appearance, a dash where a score is missing.

    Example:
    >>> print(comparison_table({"HMC": {"accuracy": 0.9667}, "MAP": {"accuracy": 0.9, "nll": 0.25}}))
    | method | accuracy |  nll |
    |:-------|---------:|-----:|
    | HMC    |   0.9667 |    – |
    | MAP    |      0.9 | 0.25 |
    """
    require(len(rows) > 0, "`rows` of comparison_table must hold at least one row", 0, "Pass {name: scores}.")
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    header = ["method", *columns]
    body = [[name, *(_shown(row.get(column)) for column in columns)] for name, row in rows.items()]
    widths = [max(len(line[i]) for line in (header, *body)) for i in range(len(header))]
    rule = "|".join([":" + "-" * (widths[0] + 1), *("-" * (width + 1) + ":" for width in widths[1:])])
    return "\n".join([_line(header, widths), f"|{rule}|", *(_line(line, widths) for line in body)])


def _shown(value: float | None) -> str:
    return _MISSING if value is None else f"{value:.4g}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    numbers = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
    return "| " + " | ".join([cells[0].ljust(widths[0]), *numbers]) + " |"
