"""Reading and writing small tables, and the function behind one of them."""

import csv
from pathlib import Path

import numpy as np


def write_csv(path: Path, header: list[str], rows: list[list[object]]) -> Path:
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def price(a: np.ndarray, colour: np.ndarray) -> np.ndarray:
    """The function behind the regression table; its noise has standard deviation 0.5."""
    return 10 + 3 * np.sin(1.5 * a) + np.where(colour == "red", 4.0, 0.0)
