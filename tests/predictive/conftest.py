"""Draws whose outputs are written down by hand."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import pytest

import weightscape as ws
from weightscape.posterior import Parameters


def _look_up(params, x):
    """A network that looks its outputs up: row n of its table at the input x = n."""
    return params["table"][x[:, 0].astype(jnp.int32)]


NETWORK = ws.networks.Function(lambda key, x: {"table": jnp.zeros((1, 1))}, _look_up)


@pytest.fixture
def table_draws() -> Callable[..., ws.Draws]:
    """`build(outputs, likelihood, y=...)`: one chain of draws with outputs (draw, point, output)."""

    def build(outputs, likelihood, y=(0.0,), own=None, log_weights=None, scaling=None):
        table = np.asarray(outputs, np.result_type(jnp.result_type(float)))[None]
        own = {name: np.asarray(values, table.dtype)[None] for name, values in (own or {}).items()}
        weights = None if log_weights is None else np.asarray(log_weights, table.dtype)[None]
        return ws.Draws(
            Parameters({"table": table}, own, ()),
            np.zeros(table.shape[:2], table.dtype),
            ws.Model(NETWORK, likelihood, ws.priors.Normal()),
            scaling,
            ws.Batch(np.zeros((1, 1)), np.asarray(y), scaling),
            log_weights=weights,
        )

    return build


@pytest.fixture
def points() -> Callable[[int], np.ndarray]:
    """Inputs that address the first rows of the table."""
    return lambda number: np.arange(number, dtype=np.float32)[:, None]
