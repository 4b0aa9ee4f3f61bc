"""Labels: names of classes and the numbers 0 … C − 1 that stand for them."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Int

from weightscape.core.checks import require


class Labels(NamedTuple):
    """`codes` index into `classes`, which are sorted: numbers by value, text by letter."""

    codes: Int[np.ndarray, " point"]
    classes: tuple[str, ...]


def encode_labels(y: np.ndarray) -> Labels:
    """Number the distinct values of a column of labels: text, whole numbers or booleans."""
    remedy = "Pass `y.ravel()`, or `y.argmax(-1)` for one-hot rows."
    require(y.ndim == 1, "Labels must have one axis", f"shape {y.shape}", remedy)
    missing = np.flatnonzero(pd.isna(y))
    came = f"{len(missing)} missing, the first at row {missing[0] if len(missing) else None}"
    require(len(missing) == 0, "Labels must all be there", came, "Remove or fill these rows.")
    values, codes = np.unique(_plain(y), return_inverse=True)
    only = f"{values[0]!s} alone" if len(values) else "none"
    require(len(values) > 1, "Classification needs at least two classes", only, "Pass rows of other classes.")
    return Labels(codes.astype(np.int32), tuple(str(value) for value in values))


def _plain(y: np.ndarray) -> np.ndarray:
    """Text as text, and whole numbers as integers even where they came as floats."""
    if y.dtype.kind == "f" and np.all(y == np.round(y)):
        return y.astype(np.int64)
    return y.astype(str) if y.dtype.kind not in "fiub" else y
