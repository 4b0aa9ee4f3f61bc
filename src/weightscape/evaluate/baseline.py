"""Baselines: learners without weights to be uncertain about, as a yardstick for those that have some.

A baseline that is fitted gives a table for any inputs, from which a Predictive is made, so that all scores apply:

    classes: P(y = c | x) in a column for each c        numbers: mean, epistemic std, noise std of a normal

The table can be stored, so that a comparison that is made again need not fit anything.
"""

import abc
import dataclasses
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float, Int
from threadpoolctl import threadpool_limits

from weightscape.core.checks import require, shape_of
from weightscape.data import Batch, Scaling
from weightscape.predictive import Predictive, given_classes, given_normals

Table = Float[np.ndarray, "point column"]

_MANY_ROWS = 10_000


class FittedBaseline(NamedTuple):
    """A baseline after training.

    - `table`: from inputs in original units to the table of predictions, numbers in the units `scaling` leads to.
    - `task`, `scaling`: of the training rows.
    - `num_bytes`: of the arrays that predictions need.  `notes`: what a reader should know.
    """

    table: Callable[[ArrayLike], Table]
    task: str
    scaling: Scaling | None
    num_bytes: int
    notes: tuple[str, ...] = ()

    def predict(self, x: ArrayLike) -> Predictive:
        """The predictive distribution at inputs in original units."""
        return table_predictive(self.table(x), self.task, self.scaling)


@dataclasses.dataclass(frozen=True)
class Baseline(abc.ABC):
    """Settings of a learner of scikit-learn."""

    @abc.abstractmethod
    def fit(self, train: Batch, num_classes: int | None, *, seed: int) -> FittedBaseline:
        """Train on rows in original units; `num_classes` is None for a regression."""


def table_predictive(table: Table, task: str, scaling: Scaling | None) -> Predictive:
    """Predictions from their table."""
    if task == "classification":
        return given_classes(table)
    mean, epistemic_std, noise = table.T
    return given_normals(mean, epistemic_std, float(noise[0]), scaling=scaling)


def scaled_columns(x: ArrayLike, scaling: Scaling | None) -> Float[np.ndarray, "point column"]:
    """Inputs as the network would see them, on one axis, in double precision."""
    inputs = jnp.asarray(x, jnp.result_type(float))
    seen = np.asarray(inputs if scaling is None else scaling.inputs(inputs), np.float64)
    return seen.reshape(len(seen), -1)


def scaled_targets(train: Batch) -> Float[np.ndarray, " point"]:
    """Numbers as the likelihood would see them; raises for vectors."""
    remedy = "Compare without the baselines: `--baselines none`."
    require(train.y.ndim == 1, "A baseline must have one number as its target", f"shape {shape_of(train.y)}", remedy)
    return np.asarray(train.y if train.scaling is None else train.scaling.targets(train.y), np.float64)


def class_table(found: Float[np.ndarray, "point seen"], seen: Int[np.ndarray, " seen"], num_classes: int) -> Table:
    """Probabilities of the classes that were `seen` in training, in a table of all of them."""
    table = np.zeros((len(found), num_classes))
    table[:, seen] = found
    return table


def told(fit: Callable[[], Any]) -> tuple[Any, tuple[str, ...]]:
    """What `fit` returns, and the first sentence of each warning that it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fit()
    return result, tuple(dict.fromkeys(" ".join(str(one.message).split()).partition(". ")[0] for one in caught))


def threads(num_rows: int) -> threadpool_limits:
    """As many threads as so many rows are worth: with few, threads that wait for each other take most of the time."""
    return threadpool_limits(1 if num_rows < _MANY_ROWS else None)


def array_bytes(thing: object) -> int:
    """The bytes of all arrays in an object, its attributes and theirs, each counted once."""
    return sum(array.nbytes for array in {id(array): array for array in _arrays(thing, set())}.values())


def _arrays(thing: object, seen: set[int]) -> Iterator[np.ndarray]:
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, (list, tuple)):
        for item in thing:
            yield from _arrays(item, seen)
    else:
        for item in (thing if isinstance(thing, dict) else getattr(thing, "__dict__", {})).values():
            yield from _arrays(item, seen)
