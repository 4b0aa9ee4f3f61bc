"""The UCI regression benchmarks with their standard splits.

Splits after Hernández-Lobato and Adams (2015) and Gal and Ghahramani (2016): 20 of 90 % and 10 %, five for
protein. They are part of the benchmark, so they are read, never drawn. Nothing is fetched, for want of a
public file with data, splits and a published checksum: `uci/NAME.npz` must be in the local directory, with the
arrays X (row, input), y (row,), train_idx (split, train) and test_idx (split, test).
"""

from pathlib import Path

from weightscape.core.checks import require, require_count, require_known
from weightscape.data.dataset import Dataset, column_names, scaled_parts
from weightscape.data.fetch import require_local_file
from weightscape.data.formats import read_npz

SIZES = {
    "boston": (506, 13),
    "concrete": (1030, 8),
    "energy": (768, 8),
    "kin8nm": (8192, 8),
    "naval": (11934, 16),
    "power": (9568, 4),
    "protein": (45730, 9),
    "wine_red": (1599, 11),
    "yacht": (308, 6),
}
"""Rows and inputs of each."""


def load_uci(name: str, *, split: int = 0, directory: str | Path | None = None) -> Dataset:
    """One standard split of a benchmark, scaled by its own training part.

    Arguments:
        name: one of `SIZES`.
        split: number of the split, 0 to 19 (protein 0 to 4).
        directory: where `uci/NAME.npz` lies; None looks in WEIGHTSCAPE_DATA.

    """
    require_known("A UCI dataset", name, SIZES)
    path = require_local_file(f"uci/{name}.npz", directory)
    x, y, train_rows, test_rows = read_npz(path, ("X", "y", "train_idx", "test_idx"))
    require_count("`split`", split, least=0)
    asked = f"`split` of {name} must be below {len(train_rows)}"
    require(split < len(train_rows), asked, split, "Pass a smaller number.")
    train, test = train_rows[split], test_rows[split]
    parts = scaled_parts((x[train], y[train]), (x[test], y[test]), "regression")
    return Dataset(name, "regression", *parts, inputs=column_names(x))
