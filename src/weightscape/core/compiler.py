"""A guard against a compiler that returns wrong numbers without a word.

On CPU, jax before 0.11 can fuse a matrix product with the sum or maximum that follows it into a library call that is
wrong for every row past 128 KiB of results (jax issue 39103; `tests/test_canary.py` has the measurements). A flag turns
these fusions off. It must be set before the backend starts, so it is set when weightscape is imported; where a
program computed something before that, `require_right_sums` finds out and says so.
"""

import functools
import os

import jax
import jax.numpy as jnp
import numpy as np

from weightscape.core.checks import InputError

_FLAG = "--xla_cpu_experimental_ynn_fusion_type"
_FIRST_FAULTY_ROWS = 2**14
"""128 KiB of float64: data with fewer rows are never affected."""


def turn_faulty_fusions_off() -> None:
    """Add the flag to XLA_FLAGS, unless the user has set it or jax is new enough not to need it."""
    flags = os.environ.get("XLA_FLAGS", "")
    if _may_be_faulty() and _FLAG not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_FLAG}=-reduce".strip()


def require_right_sums(num_rows: int) -> None:
    """Raise where data of `num_rows` rows would be summed wrongly."""
    affected = num_rows > _FIRST_FAULTY_ROWS and _may_be_faulty() and jax.default_backend() == "cpu"
    if affected and not _sums_are_right():
        raise InputError(
            f"Data of {num_rows} rows must be summed rightly, got a backend of jax {jax.__version__} that does not. "
            f"Import weightscape before the first computation, or set XLA_FLAGS={_FLAG}=-reduce."
        )


def _may_be_faulty() -> bool:
    return jax.__version_info__ < (0, 11)


@functools.cache
def _sums_are_right() -> bool:
    """Whether compiled row sums of a product agree with NumPy's, on a shape that is known to go wrong."""
    # Whole numbers, which sum without rounding, and rows that differ: the fault returns other rows' results.
    rows, weights = (np.arange(120_000) % 97).reshape(-1, 3).astype(np.float32), np.ones((3, 3), np.float32)
    sums = jax.jit(jax.vmap(lambda row: jnp.sum(weights @ row)))(rows)
    return bool(np.array_equal(sums, 3 * rows.sum(axis=1)))
