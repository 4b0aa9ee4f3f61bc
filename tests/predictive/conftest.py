"""Draws, and Gaussians over weights, whose outputs are written down by hand."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import weightscape as ws
from weightscape.inference.gaussian import Full, Gaussian
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


@pytest.fixture
def gaussian_over() -> Callable[..., Gaussian]:
    """`build(posterior, seed=...)`: N(μ, Σ) over all coordinates, with a random μ and a random full Σ."""

    def build(posterior, seed=0, spread=0.3):
        rng = np.random.default_rng(seed)
        like = posterior.model.start_position(jax.random.key(seed), posterior.x)
        mean = jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape), leaf.dtype), like)
        size = sum(leaf.size for leaf in jax.tree.leaves(like))
        root = spread * (np.tril(rng.normal(size=(size, size)), -1) / np.sqrt(size) + np.eye(size))
        return Gaussian.over(posterior, mean, Full.of_cholesky(jnp.asarray(root, posterior.x.dtype)))

    return build


@functools.cache
def _table_network(shape):
    """The network with a table of that shape: one object, so that tests share compiled programs."""
    return ws.networks.Function(lambda key, x: {"table": jnp.zeros(shape, x.dtype)}, _look_up)


@pytest.fixture
def table_gaussian() -> Callable[..., Gaussian]:
    """`build(mean, covariance, likelihood, y)`: outputs (point, output) that are N(mean, covariance) together."""

    def build(mean, covariance, likelihood, y):
        mean, y = np.asarray(mean), np.asarray(y)
        batch = ws.Batch(np.arange(len(mean), dtype=float)[:, None], y)
        posterior = ws.Model(_table_network(mean.shape), likelihood, ws.priors.Normal()).condition(batch)
        centre = posterior.model.start_position(jax.random.key(0), posterior.x)
        centre = centre._replace(network={"table": jnp.asarray(mean, posterior.x.dtype)})
        root = np.linalg.cholesky(np.asarray(covariance))
        return Gaussian.over(posterior, centre, Full.of_cholesky(jnp.asarray(root, posterior.x.dtype)))

    return build


@pytest.fixture
def logits_gaussian(table_gaussian) -> Callable[..., Gaussian]:
    """`build(mean, covariances, likelihood)`: logits N(mean_n, covariance_n) at each point n, independent."""

    def build(mean, covariances, likelihood):
        num_points, num_outputs = np.shape(mean)
        joint = np.zeros((num_points, num_outputs, num_points, num_outputs))
        joint[np.arange(num_points), :, np.arange(num_points)] = covariances
        joint = joint.reshape(num_points * num_outputs, -1)
        return table_gaussian(mean, joint, likelihood, np.arange(num_points) % 2)

    return build
