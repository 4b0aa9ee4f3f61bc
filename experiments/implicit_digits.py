"""Digits read off the weights of the networks that draw them.

    WEIGHTSCAPE_DATA=<mnist's folder> python -m experiments.implicit_digits FOLDER [fit] [read] [--small]

`fit` fits a sine network to each image of MNIST, each from its own start, and writes the networks, `fit.md` and a
picture. `read` trains classifiers that see nothing but the weights, and writes `read.md`. Both go on where they were
stopped. `--small` takes 8 × 8 digits.

References: Sitzmann, Martel, Bergman, Lindell & Wetzstein (2020), Implicit neural representations with periodic
activation functions; Navon, Shamsian, Achituve, Fetaya, Chechik & Maron (2023), Equivariant architectures for learning
in deep weight spaces, for the task.
"""

import datetime
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from experiments.implicit import figure, reading, store
from experiments.implicit.settings import FULL, SMALL, Settings, pictures

from weightscape.core.files import write_text


def main(folder: Path, settings: Settings, parts: set[str]) -> None:
    device = f"{jax.devices()[0].device_kind}, jax {jax.__version__}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in (("fit", fit), ("read", read)):
        if name in parts:
            lines = [f"{datetime.date.today()}, {device}, {settings}", "", *part(folder, settings)]
            write_text(folder / f"{name}.md", "\n".join(lines) + "\n")
            print("\n".join(lines), flush=True)


def fit(folder: Path, settings: Settings) -> list[str]:
    """Fit what is not fitted yet; how well it went."""
    given = pictures(settings)
    seconds = store.fit_all(jax.random.key(0), given, settings, folder)
    stored = store.read_all(settings, folder)
    figure.save_reconstructions(folder / "reconstructions.png", given, stored, settings)
    low, middle = np.percentile(stored.psnr, (1, 50))
    quality = f"PSNR {middle:.1f} dB in the median, {low:.1f} dB or less for one in a hundred"
    return [f"{len(stored.psnr):,} networks, {seconds:.0f} s for those that were not there; {quality}."]


def read(folder: Path, settings: Settings) -> list[str]:
    """Train what is not trained yet; the table."""
    stored = store.read_all(settings, folder)
    classes = jnp.asarray(pictures(settings).classes[: len(stored.psnr)])
    examples = reading.Examples(jax.tree.map(jnp.asarray, stored.params), classes)
    return reading.table(reading.read_all(jax.random.key(1), examples, settings, folder))


if __name__ == "__main__":
    options = set(sys.argv[2:])
    main(Path(sys.argv[1]), SMALL if "--small" in options else FULL, options & {"fit", "read"} or {"fit", "read"})
