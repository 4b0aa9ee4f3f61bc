"""Flows with conditions: known distributions of networks for each label and property, with their densities."""

import dataclasses

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.flow import gaussians
from tests.flow.linear_flows import problem, weights_of

import weightscape as ws
from weightscape.core import InputError
from weightscape.draws import Header
from weightscape.flow import (
    Aligned,
    ByLabel,
    ByLoss,
    ByProperty,
    Equivariant,
    Euclidean,
    FixedSteps,
    OptimalTransport,
    Plain,
    Principal,
    mean_losses,
)
from weightscape.flow.fields import Field
from weightscape.metanet import Sizes

pytestmark = pytest.mark.usefixtures("x64")
KEY = jax.random.key(0)
SIZES = Sizes(width=32, num_blocks=2, num_heads=1)
NUM_DRAWN = 4000

MEANS = np.array([[2.0, 0.0, -1.0], [-1.5, 1.0, 0.0], [0.0, -2.0, 1.5]])
ROOTS = np.array(
    [
        [[0.5, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.7]],
        [[1.0, 0.0, 0.0], [0.6, 0.5, 0.0], [0.0, 0.3, 0.4]],
        [[0.6, 0.0, 0.0], [-0.5, 0.8, 0.0], [0.2, 0.0, 1.0]],
    ]
)
SLOPE, SPREAD = np.array([0.4, -0.8, 0.2]), 0.5
"""θ | y ~ N(a y, s² 1), with y ~ N(5, 2²) in the user's units."""


def population(weights, **info):
    """Networks of the linear model, whose three weights are given as (run, network, 3)."""
    posterior = problem().posterior
    like = posterior.constrain(posterior.start_position(KEY))
    params = jax.tree.map(lambda leaf: weights.reshape(*weights.shape[:2], *leaf.shape), like)
    return ws.Draws(params, weights.sum(-1), *Header.of(posterior)).with_info(**info)


def labelled(num_runs, seed):
    """N(m_c, Σ_c) for each of three labels, one population after the other."""
    generator = np.random.default_rng(seed)
    noise = generator.normal(size=(3, num_runs, 10, 3))
    parts = [population(MEANS[c] + noise[c] @ ROOTS[c].T, kind=c) for c in range(3)]
    return parts[0].merge(parts[1:])


def measured(num_runs, seed):
    generator = np.random.default_rng(seed)
    y = generator.normal(5.0, 2.0, size=(num_runs, 10))
    return population(y[..., None] * SLOPE + SPREAD * generator.normal(size=(num_runs, 10, 3)), size=y)


def log_normal(draws, label):
    return gaussians.log_normal(weights_of(draws), MEANS[label], ROOTS[label] @ ROOTS[label].T)


def trained(conditions, architecture, draws):
    method = ws.PopulationMatching(
        Euclidean(),
        num_steps=800,
        batch_size=256,
        learning_rate=1e-2,
        average=0.99,
        architecture=architecture,
        solver=FixedSteps(18, diffrax.Bosh3(), num_nodes=8),
        conditions=conditions,
    )
    return method.run(KEY, problem().posterior, draws=draws)


@pytest.fixture(scope="module")
def by_label():
    with jax.enable_x64(True):
        return trained(ByLabel("kind", 3, dropped=0.2), Plain(SIZES), labelled(200, 0))


@pytest.fixture(scope="module")
def by_property():
    with jax.enable_x64(True):
        return trained(ByProperty("size"), Principal(SIZES), measured(400, 1))


def assert_density(log_ratio, most):
    """KL(p ‖ q) from draws of p, and the spread of log p − log q, near √(2 KL) where q is close."""
    error = np.std(log_ratio) / np.sqrt(log_ratio.size)
    assert -5 * error < np.mean(log_ratio) < most + 5 * error
    assert np.std(log_ratio) < np.sqrt(2 * most) + 0.1


@pytest.mark.parametrize("label", range(3))
def test_each_label_has_its_own_mean_covariance_and_density(by_label, label):
    """0.03 to 0.06 nats are left after this training, where another label's normal is more than 4 nats away.

    Allowed are 0.1 nats, and 0.1 and 0.2 for means and covariances, whose entries are near 1, with 5 standard errors.
    """
    flow = by_label.given(label)
    weights = weights_of(flow.sample(jax.random.key(1), NUM_DRAWN))[0]
    error = 5 * np.sqrt(2 / NUM_DRAWN)
    np.testing.assert_allclose(weights.mean(0), MEANS[label], atol=0.1 + error)
    np.testing.assert_allclose(np.cov(weights.T), ROOTS[label] @ ROOTS[label].T, atol=0.2 + error)
    fresh = labelled(10, 7)[10 * label : 10 * label + 10]
    assert_density(log_normal(fresh, label) - flow.log_densities(fresh), 0.1)
    assert np.mean(log_normal(fresh, label) - log_normal(fresh, (label + 1) % 3)) > 4


def test_without_a_label_it_is_the_mixture(by_label):
    """Learned from the fifth of the examples whose label was dropped; 0.15 nats are left, and 0.25 allowed."""
    fresh = labelled(10, 7)
    log_mixture = np.logaddexp.reduce([log_normal(fresh, label) for label in range(3)]) - np.log(3)
    assert_density(log_mixture - by_label.given(None).log_densities(fresh), 0.25)
    assert np.mean(log_mixture - by_label.given(1).log_densities(fresh)) > 2


def test_a_property_moves_the_mean_by_its_slope_and_nothing_else(by_property):
    """Means at three values, in the user's units, lie on the line a y; the covariance is s² 1 at each."""
    values, error = np.array([2.0, 5.0, 8.0]), 5 * SPREAD / np.sqrt(NUM_DRAWN)
    drawn = [weights_of(by_property.given(y).sample(jax.random.key(1), NUM_DRAWN))[0] for y in values]
    slope = (drawn[2].mean(0) - drawn[0].mean(0)) / 6
    np.testing.assert_allclose(slope, SLOPE, atol=0.02 + error / 3)
    for y, weights in zip(values, drawn, strict=True):
        np.testing.assert_allclose(weights.mean(0), SLOPE * y, atol=0.08 + error)
        np.testing.assert_allclose(np.cov(weights.T), SPREAD**2 * np.eye(3), atol=0.06 + 1.5 * SPREAD * error)


def test_the_density_of_a_property_is_the_known_one(by_property):
    fresh = measured(3, 7)
    for y in (3.0, 6.0):
        moved = population(weights_of(fresh) + (y - fresh.info["size"])[..., None] * SLOPE)
        known = gaussians.log_normal(weights_of(moved), SLOPE * y, SPREAD**2 * np.eye(3))
        assert_density(known - by_property.given(y).log_densities(moved), 0.1)
