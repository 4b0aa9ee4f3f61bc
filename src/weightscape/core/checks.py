"""The one form of an error: what was asked, what came, what to do.

    `step_size` of SGHMC must be positive, got -0.1. Pass a positive number or a schedule.

`InputError` and `InputTypeError` mark mistakes that the caller can mend; the command line prints
them as one line and lets everything else through with its trace.
"""

import difflib
import math
from collections.abc import Iterable, Sequence

import numpy as np
from jax.core import Tracer


class InputError(ValueError):
    """A value that the caller can mend."""


class InputTypeError(TypeError):
    """A type that the caller can mend."""


def require(condition: bool, asked: str, came: object, remedy: str) -> None:
    """Raise `InputError("{asked}, got {came}. {remedy}")` unless `condition` holds."""
    if not condition:
        raise InputError(f"{asked}, got {came}. {remedy}")


def require_type(condition: bool, asked: str, came: object, remedy: str) -> None:
    """Raise `InputTypeError("{asked}, got {came}. {remedy}")` unless `condition` holds."""
    if not condition:
        raise InputTypeError(f"{asked}, got {came}. {remedy}")


def require_known(kind: str, name: str, known: Iterable[str]) -> None:
    """Raise unless `name` is one of `known`; the error lists them and the nearest one."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    guess = f"Did you mean {near[0]!r}? " if near else ""
    require(name in names, f"{kind} must be a known name", repr(name), f"{guess}Known: {', '.join(names)}.")


def require_positive(name: str, value: object) -> None:
    """Raise unless every entry of a concrete `value` is positive and finite.

    Traced values pass: a check cannot look at a number that does not exist yet.
    """
    if not isinstance(value, Tracer) and _is_numeric(value):
        numbers = np.asarray(value)
        require(
            bool(np.all((numbers > 0) & np.isfinite(numbers))),
            f"{name} must be positive and finite",
            _shown(numbers),
            "Pass a positive number.",
        )


def require_count(name: str, value: int, *, least: int = 1) -> None:
    """Raise unless `value` is a whole number of at least `least`."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    require_type(whole, f"{name} must be a whole number", repr(value), f"Pass an int of at least {least}.")
    require(value >= least, f"{name} must be at least {least}", value, "Pass a larger number.")


def require_fraction(name: str, value: float) -> None:
    """Raise unless 0 < `value` < 1."""
    inside = 0 < value < 1 and math.isfinite(value)
    require(inside, f"{name} must lie strictly between 0 and 1", value, "Pass a fraction such as 0.9.")


def require_finite(name: str, value: object) -> None:
    """Raise unless every entry of a concrete array is finite; the error names the first bad index."""
    numbers = np.asarray(value)
    bad = np.argwhere(~np.isfinite(numbers))
    where = tuple(int(i) for i in bad[0]) if len(bad) else ()
    came = f"{len(bad)} non-finite entries, the first at index {where}"
    require(len(bad) == 0, f"{name} must be finite", came, "Remove or fill these entries.")


def shape_of(array: object) -> Sequence[int]:
    """The shape as a tuple of plain ints, for messages."""
    return tuple(int(size) for size in getattr(array, "shape", ()))


def _is_numeric(value: object) -> bool:
    return np.asarray(value).dtype.kind in "iuf"


def _shown(numbers: np.ndarray) -> str:
    return str(numbers.item()) if numbers.size == 1 else f"an array with minimum {numbers.min()}"
