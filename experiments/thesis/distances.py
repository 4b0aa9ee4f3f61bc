"""How good networks are against how far they are from those that were shown: flows, noisy copies, and blends.

python -m experiments.thesis.distances FOLDER/PROBLEM PICTURE.png [NAME ...]
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from experiments.thesis.tables import BLENDED, NOISY, TRAINING

from weightscape.core.files import read_json

KINDS = {NOISY: "training networks with noise", BLENDED: "blends of two re-based networks"}


def main(folder: Path, picture: Path, names: list[str]) -> None:
    """Curves of the baselines, and a point for each of the named flows."""
    known = read_json(folder / "results" / "population.json")["results"]
    figure, axis = plt.subplots(figsize=(7.0, 4.0))
    for kind, label in KINDS.items():
        rows = [row for name, row in known.items() if name == TRAINING or name.startswith(kind)]
        axis.plot(*zip(*sorted(map(_place, rows)), strict=True), "o-", markersize=3, label=label)
    points = {"held-out networks": known["held-out networks"]} | {name: _result(folder, name) for name in names}
    for name, row in points.items():
        axis.plot(*_place(row), "k*", markersize=9)
        axis.annotate(name, _place(row), xytext=(7, 5), textcoords="offset points", fontsize=8)
    farthest = max(_place(row)[0] for row in points.values())
    axis.set_xlim(-0.1, 1.4 * farthest)
    axis.set_ylim(min(_place(row)[1] for row in points.values()) - 0.04, None)
    axis.set_xlabel("distance to the nearest training network, over that of held-out ones")
    axis.set_ylabel("accuracy of one network")
    axis.legend(frameon=False, fontsize=8, loc="lower left")
    figure.savefig(picture, dpi=110, bbox_inches="tight")


def _result(folder: Path, name: str) -> dict[str, Any]:
    return read_json(folder / "results" / f"{name}.json")["results"][name]


def _place(row: dict[str, Any]) -> tuple[float, float]:
    return row["functions"]["ratio"], row["accuracy"]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
