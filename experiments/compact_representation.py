"""The poster "A compact representation for Bayesian neural networks", repeated on MNIST 784-512-10.

    WEIGHTSCAPE_DATA=<mnist's folder> python -m experiments.compact_representation FOLDER [small] [table|training]

Samples HMC with the poster's step and trajectory, an ensemble and mean-field VI; fits Gaussians with and without rebase
(Table 1), measures how close to one mode the posterior is, prunes (figure 5), trains from permuted starts (figure 3),
and interpolates through training (figure 2). Writes `results.md` and figures into FOLDER. `small` takes digits.

Reference: Xiao, Liu & Bamler (2023).
"""

import datetime
import sys
from pathlib import Path

import jax
import numpy as np
from experiments.compact import posteriors, training
from experiments.compact.figures import save_all
from experiments.compact.settings import POSTER, SMALL, Settings, problem

POSTER_TABLE = {
    "HMC samples": (1.0, 0.0, 98.43, None), "HMC q_d": (0.1212, 0.8641, 11.11, 28.06),
    "HMC q_r (activations)": (0.8249, 0.6570, 82.34, 92.25), "Ensemble samples": (0.9931, 0.0229, 98.66, None),
    "Ensemble q_d": (0.5239, 0.7210, 52.25, 86.40), "Ensemble q_r (activations)": (0.9868, 0.0495, 97.72, 97.97),
    "VI": (0.9885, 0.0235, 98.11, 98.04),
}  # fmt: skip


def main(folder: Path, settings: Settings, parts: set[str]) -> None:
    given = problem(settings)
    folder.mkdir(parents=True, exist_ok=True)
    key_table, key_pairs, key_lines = jax.random.split(jax.random.key(0), 3)
    device = f"{jax.devices()[0].device_kind}, jax {jax.__version__}"
    lines = [f"{datetime.date.today()}, {device}, {settings}", ""]
    found = posteriors.analyse(key_table, given, settings) if "table" in parts else None
    if found is not None:
        lines += [
            *table(found.rows, POSTER_TABLE if settings is POSTER else {}),
            "",
            *(f"- {note}" for note in found.notes),
            "",
            *pruning(found),
        ]
        (folder / "results.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    pairs, along = [], {}
    if "training" in parts:
        pairs = training.pairs(key_pairs, given, settings)
        along = training.interpolations(key_lines, given, settings)
        lines += ["", *figure3(pairs), "", *figure2(along)]
    (folder / "results.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    save_all(folder, found, pairs, along)
    print("\n".join(lines))


def table(rows: dict[str, tuple[float, ...]], theirs: dict) -> list[str]:
    """Table 1, the poster's numbers in brackets."""
    shown = lambda value, other: (
        ("–" if np.isnan(value) else f"{value:.4g}") + (f" ({other:g})" if other is not None else "")
    )
    cells = [
        "| " + " | ".join([name, *map(shown, values, theirs.get(name, (None,) * 4))]) + " |"
        for name, values in rows.items()
    ]
    return ["| | " + " | ".join(posteriors.HEADINGS) + " |", "|---|---|---|---|---|", *cells]


def pruning(found: posteriors.Found) -> list[str]:
    """Accuracy of the mean network and of samples against the share of kept weights."""
    lines = ["| pruned | " + " | ".join(found.curves) + " |", "|---|" + "---|" * len(found.curves)]
    for row in zip(*found.curves.values(), strict=True):
        cells = [f"{100 * r.samples['accuracy']:.1f}, {100 * r.mean_network['accuracy']:.1f}" for r in row]
        lines.append(f"| {100 * row[0].keep:g} % kept | " + " | ".join(cells) + " |")
    return [*lines, "", "Each cell: accuracy in % of samples and of the mean network; kept are the smallest σ."]


def figure3(pairs: list[training.Pair]) -> list[str]:
    """Mean and standard deviation over runs for each number of transpositions."""
    lines = ["| " + " | ".join(training.Pair._fields) + " |", "|---|---|---|---|---|---|"]
    for number in sorted({pair.planted for pair in pairs}):
        values = np.array([pair[1:] for pair in pairs if pair.planted == number], float)
        cells = [f"{m:.4g} ± {s:.2g}" for m, s in zip(values.mean(0), values.std(0), strict=True)]
        lines.append(f"| {number} | " + " | ".join(cells) + " |")
    return lines


def figure2(along: dict) -> list[str]:
    """Losses and transpositions at λ = 0, 0.1, …, 1."""
    return [f"- {name}, after {epoch} epochs: {np.round(np.asarray(values, float), 3).tolist()}"
            for name, by_epoch in along.items() for epoch, values in by_epoch.items()]  # fmt: skip


if __name__ == "__main__":
    chosen = set(sys.argv[2:])
    main(
        Path(sys.argv[1]),
        SMALL if "small" in chosen else POSTER,
        chosen & {"table", "training"} or {"table", "training"},
    )
