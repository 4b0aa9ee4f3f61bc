"""Train and test parts: a fixed shuffle, and each class represented.

Stratified splitting in one sort: shuffle, give the r-th row of a class with n rows the position r / n, and
sort by position. Every class is then spread evenly along the order, its first row at the very front, so any
cut leaves all classes in the front part as long as that part has room for one row of each.
"""

import numpy as np
from jaxtyping import Int

from weightscape.core.checks import require, require_count, require_fraction


def split_rows(
    num_rows: int, test_fraction: float, seed: int, *, labels: Int[np.ndarray, " point"] | None = None
) -> tuple[Int[np.ndarray, " train"], Int[np.ndarray, " test"]]:
    """Row numbers of the train and the test part; the same seed gives the same parts.

    With `labels` the parts have the same class proportions up to rounding, and every class is in train.
    """
    require_fraction("`test_fraction`", test_fraction)
    require_count("`seed`", seed, least=0)
    num_test = max(1, round(test_fraction * num_rows))
    num_train = num_rows - num_test
    least = 2 if labels is None else max(2, len(np.unique(labels)))
    needed = f"Data must leave at least {least} rows to train on after {num_test} are set aside for testing"
    require(num_train >= least, needed, f"{num_rows} rows", "Add rows or lower `test_fraction`.")
    order = np.random.default_rng(seed).permutation(num_rows)
    if labels is not None:
        order = order[np.argsort(_positions(labels[order]), kind="stable")]
    return order[:num_train], order[num_train:]


def _positions(labels: np.ndarray) -> np.ndarray:
    """For each row its rank among the rows of its class, divided by their number."""
    positions = np.empty(len(labels))
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        positions[rows] = np.arange(len(rows)) / len(rows)
    return positions
