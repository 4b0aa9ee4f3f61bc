"""Dataset: a training and a test part, the task, and the names a person knows things by.

Both parts are in original units and carry the same scaling, fitted on the training part only.
"""

import equinox as eqx
import numpy as np
from jaxtyping import ArrayLike

from weightscape.core.checks import require_known
from weightscape.data.batch import Batch, Values
from weightscape.data.labels import encode_labels
from weightscape.data.scaling import TASKS, Scaling
from weightscape.data.schema import TableSchema
from weightscape.data.split import split_rows


class Dataset(eqx.Module):
    """Two batches and what is known about them.

    Arguments:
        name: a short name for messages and reports.
        task: "regression" or "classification".
        train, test: batches in original units, both with the scaling fitted on `train`.
        inputs: names of the input columns; empty for images.
        target: name of the target.
        classes: names of the labels 0, 1, …; None for regression.
        schema: how the columns of a file become inputs; None for other sources.

    """

    name: str = eqx.field(static=True)
    task: str = eqx.field(static=True)
    train: Batch
    test: Batch
    inputs: tuple[str, ...] = eqx.field(static=True)
    target: str = eqx.field(static=True, default="y")
    classes: tuple[str, ...] | None = eqx.field(static=True, default=None)
    schema: TableSchema | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        require_known("`task` of Dataset", self.task, TASKS)

    def __repr__(self) -> str:
        shape = " × ".join(str(size) for size in self.train.x.shape[1:])
        classes = f", classes {_shortened(self.classes)}" if self.classes else ""
        columns = f", columns {_shortened(self.inputs)}" if self.inputs else ""
        rows = f"{len(self.train)} train and {len(self.test)} test rows"
        first_line = f"Dataset {self.name!r}: {self.task}, {rows}, inputs {shape}"
        return f"{first_line}\n  target {self.target!r}{classes}{columns}"


def from_arrays(
    x: Values,
    y: Values,
    task: str = "regression",
    test_fraction: float = 0.2,
    seed: int = 0,
    scale: bool = True,
    name: str = "arrays",
) -> Dataset:
    """A dataset from arrays, split by a fixed shuffle.

    Arguments:
        x: inputs with the point on the first axis; an array or a pandas DataFrame of numbers.
        y: targets; labels may be text or any whole numbers and are numbered in sorted order.
        task: "regression" or "classification".
        test_fraction: share of the rows set aside, with the same class proportions where there are classes.
        seed: fixes the shuffle.
        scale: fit a scaling on the training part; False leaves the units alone.
        name: for messages and reports.

    Example:
    >>> data = from_arrays(np.arange(20.0).reshape(10, 2), np.arange(10.0))
    >>> len(data.train), len(data.test)
    (8, 2)

    """
    require_known("`task`", task, TASKS)
    inputs, (targets, classes) = np.asarray(x), _encoded(np.asarray(y), task)
    Batch(inputs, targets)  # its checks name rows as the caller counts them, so they come before the split
    rows = split_rows(len(inputs), test_fraction, seed, labels=None if classes is None else targets)
    train, test = [(inputs[part], targets[part]) for part in rows]
    parts = scaled_parts(train, test, task) if scale else (Batch(*train), Batch(*test))
    return Dataset(name, task, *parts, inputs=column_names(x), classes=classes)


def scaled_parts(
    train: tuple[ArrayLike, ArrayLike], test: tuple[ArrayLike, ArrayLike], task: str, *, shared: bool = False
) -> tuple[Batch, Batch]:
    """Batches of (x, y) pairs, both with the scaling fitted on `train`; see `Scaling.fit` for `shared`."""
    scaling = Scaling.fit(*train, task, shared=shared)
    return Batch(*train, scaling), Batch(*test, scaling)


def column_names(x: object) -> tuple[str, ...]:
    """The names of the columns of a frame, x0, x1, … for a bare table, and none for images."""
    if hasattr(x, "columns"):
        return tuple(str(name) for name in x.columns)  # pyright: ignore[reportAttributeAccessIssue]  a frame
    shape = np.shape(x)  # pyright: ignore[reportArgumentType, reportCallIssue]  any array
    return tuple(f"x{i}" for i in range(shape[1])) if len(shape) == 2 else ()


def _encoded(y: np.ndarray, task: str) -> tuple[np.ndarray, tuple[str, ...] | None]:
    if task == "classification":
        return encode_labels(y)
    return (y.astype(float) if y.dtype.kind in "iub" else y), None


def _shortened(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:6])
    return shown if len(names) <= 6 else f"{shown}, … ({len(names)})"
