"""The poster's figures from what was measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from experiments.compact.posteriors import Found
from experiments.compact.training import TIMES, Pair
from matplotlib import pyplot as plt

from weightscape.report.pruning import plot_pruning
from weightscape.report.spread import plot_spread


def save_all(
    folder: Path, found: Found | None, pairs: Sequence[Pair], lines: Mapping[str, Mapping[int, np.ndarray]]
) -> None:
    """Figures 2, 3 and 5."""
    figures = {"figure2": figure2(lines), "figure3": figure3(pairs, lines)} if pairs else {}
    if found is not None:
        hmc = {name: value for name, value in found.spreads.items() if name.startswith("HMC")}
        figures |= {"figure5_spread": plot_spread(hmc), "figure5_pruning": plot_pruning(found.curves)}
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=110, bbox_inches="tight")
        plt.close(figure)


def figure2(lines: Mapping[str, Mapping[int, np.ndarray]]) -> plt.Figure:
    """Loss along W_λ through training, as they are and after rebase."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True)
    for axis, name in zip(axes, ("as they are", "rebased"), strict=True):
        for epoch, losses in lines[name].items():
            axis.plot(TIMES, losses, label=f"after {epoch} epochs")
        axis.set(title=name, xlabel="λ", yscale="log")
    axes[0].set_ylabel("test loss in nats")
    axes[1].legend()
    return figure


def figure3(pairs: Sequence[Pair], lines: Mapping[str, Mapping[int, np.ndarray]]) -> plt.Figure:
    """Transpositions, distances and barriers after training, against transpositions before; NoT along W_λ."""
    figure, axes = plt.subplots(1, 4, figsize=(15, 3.4))
    planted = sorted({pair.planted for pair in pairs})
    panels = (("found",), ("distance", "distance_rebased"), ("barrier", "barrier_rebased"))
    titles = ("NoT after training", "squared distance", "barrier in nats")
    for axis, fields, title in zip(axes, panels, titles, strict=False):
        for field in fields:
            values = [[getattr(pair, field) for pair in pairs if pair.planted == k] for k in planted]
            mean, spread = np.mean(values, axis=1), np.std(values, axis=1)
            axis.plot(planted, mean, marker="o", label="rebased" if field.endswith("rebased") else "as they are")
            axis.fill_between(planted, mean - spread, mean + spread, alpha=0.2)
        axis.set(title=title, xlabel="NoT before training")
    axes[1].legend()
    for epoch, counts in lines["NoT along the line"].items():
        axes[3].plot(TIMES, counts, label=f"after {epoch} epochs")
    axes[3].set(title="NoT along W_λ", xlabel="λ")
    axes[3].legend()
    return figure
