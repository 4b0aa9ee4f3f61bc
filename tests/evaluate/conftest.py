"""Predictions whose components are written down by hand."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import pytest

import weightscape as ws


def _look_up(params, x):
    """A network that looks its outputs up: row n of its table at the input x = n."""
    return params["table"][x[:, 0].astype(jnp.int32)]


NETWORK = ws.networks.Function(lambda key, x: {"table": jnp.zeros((1, 1))}, _look_up)


@pytest.fixture
def predictive_of() -> Callable[..., ws.Predictive]:
    """`build(outputs, likelihood, y=...)`: predictions from outputs of shape (draw, point, output)."""

    def build(outputs, likelihood, y=(0.0,), weights=None, scaling=None, memory=2**29):
        table = np.asarray(outputs, np.result_type(jnp.result_type(float)))[None]
        draws = ws.Draws(
            ws.Parameters({"table": table}, {}, ()),
            np.zeros(table.shape[:2], table.dtype),
            ws.Model(NETWORK, likelihood, ws.priors.Normal()),
            scaling,
            ws.Batch(np.zeros((1, 1)), np.asarray(y), scaling),
            log_weights=None if weights is None else np.log(weights).astype(table.dtype)[None],
        )
        return ws.predict(draws, np.arange(table.shape[2], dtype=np.float32)[:, None], memory=memory)

    return build


@pytest.fixture
def class_predictive(predictive_of) -> ws.Predictive:
    """Five draws over four classes at 200 points."""
    logits = np.random.default_rng(0).normal(scale=2, size=(5, 200, 4))
    return predictive_of(logits, ws.likelihoods.Categorical(num_classes=4), y=[0], weights=[0.1, 0.2, 0.3, 0.3, 0.1])


@pytest.fixture
def labels() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 4, size=200)
