"""A Gaussian process as a baseline: functions without a network, by scikit-learn.

    f ~ GP(0, a² exp(−|x − x'|² / 2ℓ²)),      numbers: y = f(x) + σε,      classes: P(y = c) ∝ sigmoid(f_c(x))

a, ℓ and σ maximise the evidence. For numbers all is exact. For more than two classes one process for each class is
fitted against the rest, each by Laplace's approximation, and their probabilities are divided by their sum. Inputs are
scaled as for a network, and ℓ is the same for all of them. Time grows with the cube of the rows, so beyond `most_rows`
a random choice of rows is trained on, and said.

Reference: Rasmussen and Williams, Gaussian processes for machine learning (2006), algorithms 2.1, 3.1 and 3.2.
"""

import dataclasses

import numpy as np
from jaxtyping import ArrayLike
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, WhiteKernel

from weightscape.core.checks import require_count
from weightscape.core.config import registered
from weightscape.data import Batch
from weightscape.evaluate.baseline import (
    Baseline,
    FittedBaseline,
    Table,
    array_bytes,
    class_table,
    scaled_columns,
    scaled_targets,
    threads,
    told,
)

_FIRST_NOISE = 0.1


@registered("evaluate.GaussianProcess")
@dataclasses.dataclass(frozen=True)
class GaussianProcess(Baseline):
    """A Gaussian process with a squared exponential kernel.

    - `most_rows`: how many rows are trained on at most.

    Example:
    >>> fitted = GaussianProcess().fit(data.train, 3, seed=0)           # doctest: +SKIP
    >>> print(scores(fitted.predict(data.test.x), data.test.y))         # doctest: +SKIP
    """

    most_rows: int = 500

    def __post_init__(self):
        require_count("`most_rows` of GaussianProcess", self.most_rows, least=2)

    def fit(self, train: Batch, num_classes: int | None, *, seed: int) -> FittedBaseline:
        kept, notes = _chosen(len(train), self.most_rows, seed)
        rows = Batch(train.x[kept], train.y[kept], train.scaling)
        fit = _fit_numbers if num_classes is None else _fit_classes
        with threads(len(rows)):
            found = fit(rows, num_classes or 0, seed)
        return found._replace(notes=(*notes, *found.notes))


def _chosen(num_rows: int, most: int, seed: int) -> tuple[np.ndarray, tuple[str, ...]]:
    if num_rows <= most:
        return np.arange(num_rows), ()
    kept = np.sort(np.random.default_rng(seed).choice(num_rows, most, replace=False))
    return kept, (f"{most} of {num_rows} training rows",)


def _fit_numbers(rows: Batch, _num_classes: int, seed: int) -> FittedBaseline:
    x, y = scaled_columns(rows.x, rows.scaling), scaled_targets(rows)
    centre, width = float(y.mean()), float(y.std()) or 1.0
    kernel = _kernel(x.shape[1]) + WhiteKernel(_FIRST_NOISE)
    model, notes = told(lambda: GaussianProcessRegressor(kernel, random_state=seed).fit(x, (y - centre) / width))
    noise = float(np.sqrt(model.kernel_.k2.noise_level))

    def table(new: ArrayLike) -> Table:
        x_new = scaled_columns(new, rows.scaling)
        with threads(len(x_new)):
            mean, std = model.predict(x_new, return_std=True)
        epistemic = np.sqrt(np.maximum(std**2 - noise**2, 0))
        return np.stack([centre + width * mean, width * epistemic, np.full(len(mean), width * noise)], axis=1)

    return FittedBaseline(table, "regression", rows.scaling, array_bytes(model), notes)


def _fit_classes(rows: Batch, num_classes: int, seed: int) -> FittedBaseline:
    x = scaled_columns(rows.x, rows.scaling)
    kernel = _kernel(x.shape[1])
    # Warm: each search for the mode goes on from the last one's end, which takes a quarter of the time.
    learner = GaussianProcessClassifier(kernel, warm_start=True, random_state=seed)
    model, notes = told(lambda: learner.fit(x, np.asarray(rows.y)))

    def table(new: ArrayLike) -> Table:
        x_new = scaled_columns(new, rows.scaling)
        with threads(len(x_new)):
            found = np.asarray(model.predict_proba(x_new))
        return class_table(found, np.asarray(model.classes_), num_classes)

    return FittedBaseline(table, "classification", rows.scaling, array_bytes(model), notes)


def _kernel(num_inputs: int) -> Kernel:
    """a² exp(−|x − x'|² / 2ℓ²), at first with a = 1 and ℓ² = the number of inputs, each of which varies by about 1."""
    return ConstantKernel(1.0) * RBF(np.sqrt(num_inputs))
