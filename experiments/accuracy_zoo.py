"""Reading the accuracy of a network off its weights.

    WEIGHTSCAPE_DATA=<mnist's folder> python -m experiments.accuracy_zoo FOLDER zoo mlp|convnet [--small]
    … python -m experiments.accuracy_zoo FOLDER read mlp|convnet [READER …] [--small]

`zoo` trains some thousand small networks on MNIST at 14 × 14, each with settings of its own, and stores them with their
accuracies in FOLDER. `read` learns to predict the accuracies of networks that it has not seen, from their weights
alone, and writes a table into FOLDER; all readers, or those named. Run again, both go on where they were.
`--small` takes few networks, few steps and a folder within FOLDER.

Reference: Unterthiner, Keysers, Gelly, Bousquet & Tolstikhin (2020), Predicting neural network accuracy from weights.
"""

import datetime
import sys
from pathlib import Path

import jax
import numpy as np
from experiments.zoo import fitting, reading, settings, store


def main(folder: Path, what: str, kind: str, names: list[str], *, small: bool) -> None:
    zoo, folder = (settings.SMALL, folder / "small") if small else (settings.LARGE, folder)
    if what == "zoo":
        store.make(folder, kind, zoo)
    if what == "read":
        parts = store.load(folder, kind, zoo)
        scores = reading.read_all(folder, kind, parts, fitting.SMALL if small else fitting.LARGE, names)
        lines = [*described(kind, parts), "", *reading.table(scores)]
        (folder / f"{kind}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print("\n".join(lines))


def described(kind: str, parts: store.Parts) -> list[str]:
    """The date, the device, the sizes of the parts and the spread of the accuracies."""
    sizes = " + ".join(str(len(part.accuracies)) for part in parts)
    quantiles = np.quantile(parts.test.accuracies, (0, 0.1, 0.25, 0.5, 0.75, 0.9, 1)).round(3).tolist()
    return [
        f"{datetime.date.today()}, {jax.devices()[0].device_kind}, jax {jax.__version__}, {kind}: {sizes} networks "
        f"(training, validation, test); accuracies of the test part at 0, 10, 25, 50, 75, 90, 100 %: {quantiles}"
    ]


if __name__ == "__main__":
    chosen = [argument for argument in sys.argv[1:] if argument != "--small"]
    main(Path(chosen[0]), chosen[1], chosen[2], chosen[3:], small="--small" in sys.argv)
