"""Shift: scores where inputs are not like those of training.

Two ways to make such inputs from data at hand. Covariate shift by quantile trains where a column, or a projection v·x,
is small and tests where it is large:

    cut = quantile_q(v·x_1, …, v·x_N)        inside: v·x_n ≤ cut (train and test)        outside: v·x_n > cut (test)

p(y | x) is the same on both sides, so what is lost outside is lost to extrapolation. Corruption keeps the points and
makes their inputs worse by severity.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import jax
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Shaped

from weightscape.core import PRNGKey
from weightscape.core.checks import require, require_finite, require_fraction, require_known, require_type, shape_of
from weightscape.core.choices import chosen
from weightscape.core.keys import require_key
from weightscape.data import Batch, Dataset, Scaling
from weightscape.data.split import split_rows
from weightscape.draws import Draws
from weightscape.evaluate.comparison import comparison_table
from weightscape.evaluate.corruptions import CORRUPTIONS, SEVERITIES, Corruption, at_severity
from weightscape.evaluate.scores import Scores, scores
from weightscape.predictive import Predictive, predict

Predictor: TypeAlias = Callable[[Array], Predictive]
"""A function from inputs in original units to predictions."""


class ShiftedSplit(NamedTuple):
    """Data to train and test on at or below a cut, and test points beyond it.

    - `data`: the rows inside, in a training and a test part.  `outside`: the others, with the scaling of training.
    - `cut`: the quantile, in the units of the column or projection.
    """

    data: Dataset
    outside: Batch
    cut: float


class ShiftRow(NamedTuple):
    """Scores at a severity; 0 is for inputs as they are."""

    severity: int
    scores: Scores


def shifted_split(
    data: Dataset,
    by: str | int | ArrayLike | list | tuple,
    quantile: float = 0.8,
    *,
    test_fraction: float = 0.2,
    seed: int = 0,
) -> ShiftedSplit:
    """All rows of a table, those of `data.test` too, split anew at a quantile.

    - `by`: the name or the number of a column, or a direction v with one number a column, all in original units. Small
      values are inside; minus a direction swaps the sides.
    - `quantile`: of all rows; those that equal the cut are inside.
    - `test_fraction`, `seed`: how rows inside are split by a fixed shuffle, with class proportions kept.

    Scaling is fitted anew, on the rows to train on. Every class must be among them: a class that was never seen is
    another question than covariate shift.

    Example:
    >>> split = shifted_split(load("diabetes"), "bmi", 0.8)                             # doctest: +SKIP
    >>> posterior = model.condition(split.data.train)                                   # doctest: +SKIP
    """
    require_fraction("`quantile` of shifted_split", quantile)
    x, y = (np.concatenate([np.asarray(part) for part in parts]) for parts in _parts_of(data))
    values = x.astype(np.float64) @ _direction(data, x, by)
    cut = float(np.quantile(values, quantile))
    inside, outside = np.flatnonzero(values <= cut), np.flatnonzero(values > cut)
    remedy = "Choose a column that varies, or a smaller quantile."
    require(len(outside) > 0, "`by` of shifted_split must leave rows above the cut", f"none above {cut:.6g}", remedy)
    labels = y[inside] if data.task == "classification" else None
    train, test = (inside[rows] for rows in split_rows(len(inside), test_fraction, seed, labels=labels))
    _require_all_classes(data, y, y[train])
    scaling = _fitted_anew(data, x[train], y[train])
    parts = [Batch(x[rows], y[rows], scaling) for rows in (train, test, outside)]
    shifted = dataclasses.replace(data, name=f"{data.name}, shifted", train=parts[0], test=parts[1])
    return ShiftedSplit(shifted, parts[2], cut)


def shift_curve(
    key: PRNGKey,
    draws: Draws | Predictor,
    batch: Batch,
    corruption: Corruption | str,
    severities: Sequence[int] = SEVERITIES,
) -> tuple[ShiftRow, ...]:
    """Scores on `batch` as it is, then with inputs corrupted at each severity.

    - `draws`: or a function from inputs to predictions, such as `lambda x: predict_result(key, result, x)`.
    - `corruption`: an object, whose own severity plays no part, or its name: "pixel_noise", "gaussian_blur" or
      "contrast" for images, "column_noise" for tables.

    The noise of a severity depends on the key and the severity alone, not on which others are asked for.

    Example:
    >>> print(shift_text(shift_curve(key, draws, data.test, "gaussian_blur")))          # doctest: +SKIP
    """
    require_key(key, "shift_curve")
    predicted = _predictor(draws)
    asked = chosen("`corruption` of shift_curve", corruption, Corruption, CORRUPTIONS)
    levels = [at_severity(asked, severity) for severity in severities]
    inputs = (level.corrupted(jax.random.fold_in(key, level.severity), batch.x) for level in levels)
    clean = ShiftRow(0, scores(predicted(batch.x), batch.y))
    worse = (ShiftRow(n, scores(predicted(x), batch.y)) for n, x in zip(severities, inputs, strict=True))
    return (clean, *worse)


def shift_text(rows: Sequence[ShiftRow]) -> str:
    """The rows as a Markdown table."""
    return comparison_table({f"severity {row.severity}" if row.severity else "clean": row.scores for row in rows})


def _predictor(draws: Draws | Predictor) -> Predictor:
    if isinstance(draws, Draws):
        return lambda x: predict(draws, x)
    remedy = "Pass what `method.run` returns, or a function such as `lambda x: predict(draws, x)`."
    require_type(callable(draws), "`draws` of shift_curve must be Draws or a function", type(draws).__name__, remedy)
    return draws


def _parts_of(data: Dataset) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    shape = shape_of(data.train.x)
    remedy = "For images there is shift_curve with a corruption."
    require(len(shape) == 2, "`data` of shifted_split must be a table", f"inputs of shape {shape}", remedy)
    return (data.train.x, data.test.x), (data.train.y, data.test.y)


def _direction(
    data: Dataset, x: Float[np.ndarray, "point input"], by: str | int | ArrayLike | list | tuple
) -> Float[np.ndarray, " input"]:
    num_columns = x.shape[1]
    if isinstance(by, str):
        require_known("`by` of shifted_split", by, data.inputs)
        by = data.inputs.index(by)
    if isinstance(by, int):
        remedy = "Columns are counted from 0."
        require(0 <= by < num_columns, f"`by` of shifted_split must be below {num_columns}", by, remedy)
        return np.eye(num_columns)[by]
    direction = np.asarray(by, np.float64)
    asked = f"A direction `by` of shifted_split must have one number for each of the {num_columns} columns"
    require(direction.shape == (num_columns,), asked, f"shape {direction.shape}", "Or pass a column's name.")
    require_finite("`by` of shifted_split", direction)
    return direction


def _require_all_classes(
    data: Dataset, y: Shaped[np.ndarray, "point ..."], seen: Shaped[np.ndarray, "row ..."]
) -> None:
    if data.task == "classification":
        missing = [data.classes[i] if data.classes else int(i) for i in np.setdiff1d(y, seen)]
        remedy = "Choose another column or a larger quantile."
        asked = "`by` of shifted_split must leave every class below the cut"
        require(not missing, asked, f"none of {', '.join(map(str, missing))}", remedy)


def _fitted_anew(data: Dataset, x: np.ndarray, y: np.ndarray) -> Scaling | None:
    """A scaling of the same kind as that of the data, for these rows."""
    before = data.train.scaling
    if before is None:
        return None
    fitted = Scaling.fit(x, y, data.task, shared=before.x_mean.ndim == 0)
    return fitted if before.y_mean is not None else Scaling(fitted.x_mean, fitted.x_scale)
