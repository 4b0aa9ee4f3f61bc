"""Drawn networks beside the training networks whose functions are closest: what each hidden unit looks for.

python -m experiments.thesis.figure FOLDER/PROBLEM/CONFIGURATION.npz PICTURE.png
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

_NUM_SHOWN = 3
_SIDE = 28


def main(file: Path, picture: Path) -> None:
    """Two rows for each network: its own units, and those of the nearest one, in the order that fits best."""
    with np.load(file) as arrays:
        drawn, nearest = arrays["drawn"][:_NUM_SHOWN], arrays["nearest"][:_NUM_SHOWN]
    num_units = drawn.shape[-1]
    figure, axes = plt.subplots(2 * len(drawn), num_units, figsize=(num_units * 0.8, 2 * len(drawn) * 0.85))
    for i, (own, other) in enumerate(zip(drawn, nearest, strict=True)):
        for row, units in ((2 * i, own), (2 * i + 1, other[:, _matched(own, other)])):
            _show(axes[row], units)
            axes[row, 0].set_ylabel("drawn" if row % 2 == 0 else "nearest", fontsize=8)
    figure.subplots_adjust(wspace=0.06, hspace=0.06)
    figure.savefig(picture, dpi=110, bbox_inches="tight")


def _matched(own: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The order of the other's units in which they are most alike."""
    return linear_sum_assignment(-own.T @ other)[1]


def _show(axes: np.ndarray, units: np.ndarray) -> None:
    most = np.quantile(np.abs(units), 0.99)
    for axis, unit in zip(axes, units.T, strict=True):
        axis.imshow(unit.reshape(_SIDE, _SIDE), cmap="RdBu", vmin=-most, vmax=most)
        axis.set_xticks([])
        axis.set_yticks([])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
