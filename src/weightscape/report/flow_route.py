"""A route through the inputs, along which networks can be drawn as curves whatever the number of inputs.

With one input it is the line over the data. With several it is their first principal direction,

    x(s) = mean + std · s u,      u the direction in which the standardised inputs vary most,

and rows of data lie at s = uᵀ (x − mean) / std.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from weightscape.data import Dataset
from weightscape.report.run import line

_LEAST_SCALE = 1e-12


class Route(NamedTuple):
    """Inputs along a line, and the data as they lie beside it.

    - `x`: inputs in original units.  `at`: where each lies on the route.
    - `rows`, `y`: where the training rows lie on it, and their targets.
    - `classes`: names, for a classification.
    """

    x: Float[np.ndarray, "point ..."]
    at: Float[np.ndarray, " point"]
    rows: Float[np.ndarray, " row"]
    y: Shaped[np.ndarray, " row"]
    label: str
    target: str
    classes: tuple[str, ...] | None


def route_through(dataset: Dataset) -> Route:
    """The route through the training rows of a data set."""
    x, y = np.asarray(dataset.train.x, np.float64), np.asarray(dataset.train.y)
    targets = y.reshape(len(y), -1)[:, 0]
    classes = None if dataset.task == "regression" else _classes(dataset, y)
    if x.shape[1:] == (1,):
        points = line(x)
        label = dataset.inputs[0] if dataset.inputs else "x"
        return Route(points, points[:, 0], x[:, 0], targets, label, dataset.target, classes)
    flat = x.reshape(len(x), -1)
    mean, scale = flat.mean(axis=0), flat.std(axis=0)
    scale = np.where(scale > _LEAST_SCALE, scale, 0.0)
    standardised = (flat - mean) / np.where(scale > 0, scale, 1.0)
    direction = np.linalg.svd(standardised, full_matrices=False)[2][0]
    rows = standardised @ direction
    at = line(rows)[:, 0]
    points = (mean + scale * at[:, None] * direction).reshape(-1, *x.shape[1:])
    return Route(points, at, rows, targets, "first principal direction of the inputs", dataset.target, classes)


def _classes(dataset: Dataset, y: np.ndarray) -> tuple[str, ...]:
    return dataset.classes or tuple(str(i) for i in range(int(y.max()) + 1))
