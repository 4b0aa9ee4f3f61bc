"""A few digits and the networks that stand for them."""

from pathlib import Path

import jax
import numpy as np
from experiments.implicit.settings import Pictures, Settings
from experiments.implicit.siren import render
from experiments.implicit.store import Stored
from matplotlib import pyplot as plt


def save_reconstructions(path: Path, pictures: Pictures, stored: Stored, settings: Settings) -> None:
    """The first test digit of each class, above the picture of its network."""
    chosen = np.unique(pictures.classes, return_index=True)[1]
    num_pixels = pictures.images.shape[1]
    side = round(num_pixels**0.5)
    params = jax.tree.map(lambda leaf: leaf[chosen], stored.params)
    rendered = jax.vmap(lambda one: render(one, settings.fitting, num_pixels))(params)
    figure, axes = plt.subplots(2, len(chosen), figsize=(len(chosen), 2.3))
    for column, i in enumerate(chosen):
        for axis, image in zip(axes[:, column], (pictures.images[i], rendered[column]), strict=True):
            axis.imshow(np.asarray(image).reshape(side, side), cmap="gray", vmin=0, vmax=1)
            axis.set(xticks=[], yticks=[])
        axes[1, column].set_xlabel(f"{stored.psnr[i]:.0f} dB", fontsize=8)
    axes[0, 0].set_ylabel("digit")
    axes[1, 0].set_ylabel("network")
    figure.savefig(path, dpi=80, bbox_inches="tight")
    plt.close(figure)
