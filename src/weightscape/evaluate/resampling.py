"""Resamples of points, and statistics that are computed on each of them.

A resample takes n rows of n with replacement. Statistics of one call see the same resamples, so that their
differences are those of pairs.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import jax
import numpy as np
from jaxtyping import Float, Int

from weightscape.core import PRNGKey
from weightscape.core.checks import require, require_count
from weightscape.core.keys import require_key
from weightscape.evaluate.pointwise import MeanScore

RowScore: TypeAlias = Callable[[np.ndarray, np.ndarray], float]
"""A function of the rows of a table and of the targets beside them."""

_CHUNK = 2**21
"""Row numbers held at once: 16 MiB."""


class Measured(NamedTuple):
    """A score and its standard error, in the score's units."""

    value: float
    standard_error: float

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.standard_error:.2g}"


class Means(NamedTuple):
    """A `MeanScore` with its columns computed."""

    score: MeanScore
    columns: Float[np.ndarray, "point column"]

    @property
    def num_points(self) -> int:
        """How many points there are to draw from."""
        return len(self.columns)

    def at(self, rows: Int[np.ndarray, "resample point"], counts: Int[np.ndarray, "resample point"]) -> np.ndarray:
        """The score of each resample."""
        return self.score.of_means(counts @ self.columns / self.num_points)


class Rows(NamedTuple):
    """A function of rows with the table that they are taken from."""

    score: RowScore
    table: np.ndarray
    targets: np.ndarray

    @property
    def num_points(self) -> int:
        """How many points there are to draw from."""
        return len(self.targets)

    def at(self, rows: Int[np.ndarray, "resample point"], counts: Int[np.ndarray, "resample point"]) -> np.ndarray:
        """The score of each resample."""
        return np.asarray([float(self.score(self.table[taken], self.targets[taken])) for taken in rows])


class Difference(NamedTuple):
    """One statistic less another, of the same resample."""

    first: Means | Rows
    second: Means | Rows

    @property
    def num_points(self) -> int:
        """How many points there are to draw from."""
        return self.first.num_points

    def at(self, rows: Int[np.ndarray, "resample point"], counts: Int[np.ndarray, "resample point"]) -> np.ndarray:
        """The difference of each resample."""
        return self.first.at(rows, counts) - self.second.at(rows, counts)


def measure(
    key: PRNGKey, caller: str, statistics: Sequence[Means | Rows | Difference], num_resamples: int
) -> list[Measured]:
    """All statistics with their standard errors, from the same resamples."""
    require_key(key, caller)
    require_count(f"`num_resamples` of {caller}", num_resamples, least=2)
    num_points = statistics[0].num_points
    remedy = "Score more points; one says nothing about others."
    require(num_points > 1, f"{caller} must have at least 2 points", num_points, remedy)
    everything = np.arange(num_points)[None]
    values = [float(statistic.at(everything, np.ones_like(everything))[0]) for statistic in statistics]
    parts = [
        [statistic.at(rows, counts) for statistic in statistics]
        for rows, counts in _resamples(key, num_points, num_resamples)
    ]
    resampled = np.concatenate([np.asarray(part) for part in parts], axis=1)
    broken = int(np.sum(~np.isfinite(resampled)))
    remedy = "Use a score that is defined for every choice of points."
    require(broken == 0, f"Resampled scores of {caller} must be finite", f"{broken} that are not", remedy)
    return [Measured(*pair) for pair in zip(values, resampled.std(axis=1, ddof=1).tolist(), strict=True)]


def _resamples(
    key: PRNGKey, num_points: int, num_resamples: int
) -> Iterator[tuple[Int[np.ndarray, "resample point"], Int[np.ndarray, "resample point"]]]:
    """The rows of each resample, and how often each row was taken, chunk by chunk."""
    # On the host: the key's own generator takes ten times as long here, and a program would be compiled for every n.
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    size = max(1, _CHUNK // num_points)
    for start in range(0, num_resamples, size):
        rows = generator.integers(num_points, size=(min(size, num_resamples - start), num_points))
        places = rows + num_points * np.arange(len(rows))[:, None]
        yield rows, np.bincount(places.ravel(), minlength=rows.size).reshape(rows.shape)
