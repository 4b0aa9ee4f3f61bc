"""The rows of `sgmcmc_table` on disk, as numbers and as a table."""

import datetime
import json
from pathlib import Path
from typing import Any

import jax

from weightscape.core.files import read_json, write_json, write_text

REFERENCE = "HMC: its two halves"
COLUMNS = {
    "method": "", "accuracy": "accuracy", "nll": "NLL", "agreement_test": "agreement", "tv_test": "TV",
    "agreement_foreign": "agreement, foreign", "tv_foreign": "TV, foreign",
    "networks": "networks", "epochs": "epochs", "seconds": "seconds",
}  # fmt: skip


def keep(folder: Path, row: dict[str, Any]) -> None:
    """The rows of all methods, with this one in the place of a former one of the same name.

    A reference of another length than the former drops all that was measured against that.
    """
    path = folder / "results.json"
    row |= {"date": str(datetime.date.today()), "device": jax.devices()[0].device_kind}
    print(json.dumps(row), flush=True)
    rows = {former["method"]: former for former in (read_json(path) if path.exists() else [])}
    if row["method"] == REFERENCE and rows.get(REFERENCE, row)["networks"] != row["networks"]:
        rows = {}
    rows[row["method"]] = row
    write_json(path, list(rows.values()))
    write_text(folder / "table.md", table(list(rows.values())))


def table(rows: list[dict[str, Any]]) -> str:
    """The columns of the rows, in Markdown."""
    shown = lambda value: f"{value:,.4g}" if isinstance(value, float) and value < 1000 else f"{value:,.0f}"
    cells = lambda row: [row["method"], *(shown(row[name]) for name in list(COLUMNS)[1:])]
    lines = [COLUMNS.values(), ["---"] * len(COLUMNS), *map(cells, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
