"""Column: how one column of text becomes numbers.

A number stays a number, a boolean becomes 0 or 1, and a category becomes one column of zeros and ones for
each of its values in sorted order. The kind is guessed once, from the training file; afterwards a cell that
does not fit is an error that names its column and row.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from weightscape.core.checks import InputError, require
from weightscape.core.config import registered

_MISSING = {"", "na", "n/a", "nan", "null", "<na>", "?"}
_BOOLEANS = {"false": 0.0, "true": 1.0}
_LEAST_NUMERIC_SHARE = 0.8
_MANY_CATEGORIES = 50
_MOST_CATEGORIES = 1000


@registered("data.Column")
@dataclasses.dataclass(frozen=True)
class Column:
    """One column of a table.

    Arguments:
        name: as in the header.
        kind: "number", "boolean" or "category".
        categories: the known values of a category, sorted; empty for the other kinds.

    """

    name: str
    kind: str
    categories: tuple[str, ...] = ()

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs this column turns into."""
        return tuple(f"{self.name}={value}" for value in self.categories) or (self.name,)

    def encode(self, texts: pd.Series) -> Float[np.ndarray, "point input"]:
        """Numbers for a column of text."""
        require_present(texts)
        if self.kind == "number":
            return parse_numbers(texts)[:, None]
        known = _BOOLEANS if self.kind == "boolean" else {value: i for i, value in enumerate(self.categories)}
        codes = (texts.str.lower() if self.kind == "boolean" else texts).map(known)
        _require_seen(texts, codes.isna().to_numpy(), tuple(known))
        if self.kind == "boolean":
            return codes.to_numpy(np.float64)[:, None]
        return np.eye(len(self.categories))[codes.to_numpy(np.int64)]


def infer_column(texts: pd.Series) -> Column:
    """Guess the kind of an input column from its text.

    All true or false: boolean. At least 80 % numbers: number, and the remaining cells are mistakes.
    Anything else: a category, unless it has so many values that it looks like an identifier.
    """
    require_present(texts)
    kind = infer_kind(texts)
    if kind != "category":
        return Column(str(texts.name), kind)
    categories = tuple(sorted(set(texts)))
    _require_few(texts, len(categories))
    return Column(str(texts.name), kind, categories)


def infer_kind(texts: pd.Series) -> str:
    """The kind of a column without missing cells: "number", "boolean" or "category"."""
    if texts.str.lower().isin(list(_BOOLEANS)).all():
        return "boolean"
    return "number" if np.mean(is_number(texts)) >= _LEAST_NUMERIC_SHARE else "category"


def is_number(texts: pd.Series) -> Bool[np.ndarray, " point"]:
    """True for cells that read as a number."""
    return ~np.isnan(_numbers(texts))


def require_present(texts: pd.Series) -> None:
    """Raise at the first empty cell, or one that says NA, NaN, null or ?."""
    gone = texts.str.lower().isin(_MISSING).to_numpy()
    if gone.any():
        asked = f"Column {texts.name!r} must have no missing values"
        remedy = f"Fill or remove the {int(gone.sum())} such rows, or remove the column."
        raise InputError(f"{asked}, got {_cell(texts, gone)}. {remedy}")


def parse_numbers(texts: pd.Series) -> Float[np.ndarray, " point"]:
    """Finite numbers for a column of text; the error names the first cell that is not one."""
    numbers = _numbers(texts)
    wrong = np.isnan(numbers)
    if wrong.any():
        remedy = "Correct the cell; a decimal point is a point, and thousands have no separator."
        raise InputError(f"Column {texts.name!r} must hold numbers, got {_cell(texts, wrong)}. {remedy}")
    wrong = np.abs(numbers) > float(jnp.finfo(jnp.result_type(float)).max)
    if wrong.any():
        raise InputError(
            f"Column {texts.name!r} must hold finite numbers, got {_cell(texts, wrong)}. Correct the cell."
        )
    return numbers


def _numbers(texts: pd.Series) -> np.ndarray:
    return np.asarray(pd.to_numeric(texts, errors="coerce"), np.float64)


def _require_seen(texts: pd.Series, unseen: np.ndarray, known: tuple[str, ...]) -> None:
    if unseen.any():
        shown = ", ".join(known[:10]) + (", …" if len(known) > 10 else "")
        asked = f"Column {texts.name!r} must hold values known from training"
        raise InputError(f"{asked}, got {_cell(texts, unseen)}. Known: {shown}.")


def _require_few(texts: pd.Series, num_categories: int) -> None:
    unlike_each_other = num_categories > _MANY_CATEGORIES and 2 * num_categories > len(texts)
    asked = f"Column {texts.name!r} must be numbers or have fewer distinct values"
    first = f"{texts.iloc[0]!r} in row {texts.index[0]}"
    came = f"{num_categories} distinct texts in {len(texts)} rows, the first {first}"
    remedy = f"It looks like an identifier or free text: leave it out with `ignore=({texts.name!r},)`."
    require(not unlike_each_other and num_categories <= _MOST_CATEGORIES, asked, came, remedy)


def _cell(texts: pd.Series, which: np.ndarray) -> str:
    first = int(np.argmax(which))
    return f"{texts.iloc[first]!r} in row {texts.index[first]}"
