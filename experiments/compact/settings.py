"""Settings of the poster on MNIST, and a small version of everything on digits."""

from typing import NamedTuple

import equinox as eqx
import numpy as np

import weightscape as ws


class Settings(NamedTuple):
    """What is computed, and how much of it. `epochs` and `batch_size` are those of ensemble, VI and training pairs."""

    data: str
    hidden: int
    step_size: float
    num_leapfrog: int
    num_burn_in: int
    num_draws: int
    epochs: int
    batch_size: int
    num_members: int
    num_samples: int
    precision: str
    transpositions: tuple[int, ...]
    checkpoints: tuple[int, ...]
    num_runs: int


POSTER = Settings(
    "mnist", 512, 0.001, 500, 200, 1000, 50, 100, 5, 100, "float16", (0, 1, 8, 64, 256, 448, 511), (0, 1, 2, 4, 8), 5
)
SMALL = Settings("digits", 12, 0.004, 20, 10, 40, 2, 100, 4, 10, "default", (0, 4, 11), (0, 1, 2), 2)


class Problem(NamedTuple):
    """A posterior, the same with all products in float32, and test images as the network sees them."""

    posterior: ws.Posterior
    exact: ws.Posterior
    test: ws.Batch

    def num_steps(self, settings: Settings, epochs: int) -> int:
        return epochs * self.posterior.num_points // settings.batch_size


def problem(settings: Settings) -> Problem:
    """Images in [0, 1], ReLU units, a N(0, 1) prior."""
    data = ws.data.load(settings.data, flatten=True) if settings.data == "mnist" else ws.data.load(settings.data)
    largest = float(np.max(data.train.x))
    scaled = lambda batch: ws.Batch(np.asarray(batch.x) / largest, batch.y)
    exact = _model(settings, "default").condition(scaled(data.train))
    rounded = _model(settings, settings.precision).condition(scaled(data.train))
    inputs = ws.networks.PRECISIONS[settings.precision].inputs(rounded.x)
    return Problem(eqx.tree_at(lambda p: p.x, rounded, inputs), exact, scaled(data.test))


def _model(settings: Settings, precision: str) -> ws.Model:
    network = ws.networks.MLP(hidden=(settings.hidden,), activation="relu", precision=precision)
    return ws.Model(network, ws.likelihoods.Categorical(10), ws.priors.Normal(1.0))
