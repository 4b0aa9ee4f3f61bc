"""Batches: what is computed a few rows at a time is what is computed at once, by one program."""

import jax.numpy as jnp
import numpy as np
import pytest

from weightscape.core.batches import in_batches


@pytest.mark.parametrize("batch_size", [1, 4, 7, 16])
def test_rows_come_back_in_order_and_the_padding_does_not(batch_size):
    x, y = np.arange(7.0, dtype=np.float32), np.arange(14.0, dtype=np.float32).reshape(7, 2)
    total, parts = in_batches(lambda x, row: (x + jnp.sum(row["y"]), row["y"] * x), batch_size, x, {"y": y})
    np.testing.assert_array_equal(total, x + y.sum(1))
    np.testing.assert_array_equal(parts, y * x[:, None])


def test_the_last_batch_compiles_nothing_new():
    shapes = []

    def square(x):
        shapes.append(None)
        return x**2

    in_batches(square, 4, np.arange(10.0, dtype=np.float32))
    assert len(shapes) == 1
