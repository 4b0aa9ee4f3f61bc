"""Settings on MNIST, and a small version of everything on 8 × 8 digits."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

import weightscape as ws
from weightscape.metanet import Sizes


class Fitting(NamedTuple):
    """How networks are fitted: units of the hidden layers, ω₀, Adam's steps, and how many at once."""

    hidden: tuple[int, ...]
    frequency: float
    num_steps: int
    step_size: float
    group_size: int


class Reading(NamedTuple):
    """How classifiers are trained: steps, and noise in standard deviations of the weights of a leaf.

    `flat_hidden` has about the parameters of the metanet, `wide_hidden` at least its operations.
    """

    sizes: Sizes
    flat_hidden: tuple[int, ...]
    wide_hidden: tuple[int, ...]
    num_steps: int
    batch_size: int
    noise: float
    num_seeds: int


class Settings(NamedTuple):
    """Which images, how often each training image is fitted, networks in one file, and how."""

    data: str
    num_train: int
    num_validation: int
    num_test: int
    num_views: int
    chunk_size: int
    fitting: Fitting
    reading: Reading


FULL = Settings(
    "mnist", 54_000, 2_000, 10_000, 1, 6_000, Fitting((32, 32), 10.0, 500, 5e-3, 1_000),
    Reading(Sizes(width=64, edge_width=16, num_blocks=3, num_heads=4), (272,) * 3, (4096,) * 3, 10_000, 128, 0.02, 3),
)  # fmt: skip
SMALL = Settings(
    "digits", 1_000, 200, 200, 1, 500, Fitting((8, 8), 4.0, 300, 1e-2, 100),
    Reading(Sizes(width=16, edge_width=8, num_blocks=2, num_heads=2), (64, 64), (256, 256), 1_000, 64, 0.02, 1),
)  # fmt: skip


class Pictures(NamedTuple):
    """Images in [0, 1] in the order in which they are fitted, and their classes: test, validation, then training."""

    images: Float[np.ndarray, "image pixel"]
    classes: Int[np.ndarray, " image"]


def pictures(settings: Settings) -> Pictures:
    """Test images are of the test set, all others of the training set; further views repeat the training images."""
    data = ws.data.load(settings.data)
    held = settings.num_test, settings.num_validation, settings.num_train
    train_size = settings.num_validation + settings.num_train
    parts = [(data.test, 0, held[0]), (data.train, 0, held[1])]
    parts += [(data.train, held[1], train_size)] * settings.num_views
    largest = float(np.max(data.train.x))
    images = [np.asarray(batch.x[a:b]).reshape(b - a, -1) / largest for batch, a, b in parts]
    classes = [np.asarray(batch.y[a:b]) for batch, a, b in parts]
    return Pictures(np.concatenate(images).astype(np.float32), np.concatenate(classes).astype(np.int32))
