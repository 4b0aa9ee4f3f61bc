"""Flows with conditions: known distributions of networks for each label and property, with their densities."""

import diffrax
import jax
import numpy as np
import pytest
from tests.flow import gaussians, tiny, von_mises
from tests.flow.linear_flows import problem, weights_of

import weightscape as ws
from weightscape.core import InputError
from weightscape.draws import Header
from weightscape.flow import (
    ByLabel,
    ByLoss,
    ByProperty,
    Equivariant,
    Euclidean,
    FixedSteps,
    Geometric,
    Plain,
    Principal,
    mean_losses,
)
from weightscape.metanet import Sizes
from weightscape.symmetry import of_function

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


def trained(conditions, architecture, draws, num_steps=800):
    method = ws.PopulationMatching(
        Euclidean(),
        num_steps=num_steps,
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
        return trained(ByProperty("size", dropped=0.0), Principal(SIZES), measured(400, 1))


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
    fresh = labelled(10, 7)[::3]
    log_mixture = np.logaddexp.reduce([log_normal(fresh, label) for label in range(3)]) - np.log(3)
    assert_density(log_mixture - by_label.given(None).log_densities(fresh), 0.25)
    assert np.mean(log_mixture - by_label.given(1).log_densities(fresh)) > 2


def test_a_property_moves_the_mean_by_its_slope_and_nothing_else(by_property):
    """Means at three values, in the user's units, lie on the line a y; the covariance is s² 1 at each.

    Allowed to what was not learned are 0.02 of the slope, 0.04 of means up to 5.6, and 0.08 of variances of 0.25.
    """
    values, error = np.array([3.0, 5.0, 7.0]), 5 * SPREAD / np.sqrt(NUM_DRAWN)
    drawn = [weights_of(by_property.given(y).sample(jax.random.key(1), NUM_DRAWN))[0] for y in values]
    slope = (drawn[2].mean(0) - drawn[0].mean(0)) / 4
    np.testing.assert_allclose(slope, SLOPE, atol=0.02 + error / 2)
    for y, weights in zip(values, drawn, strict=True):
        np.testing.assert_allclose(weights.mean(0), SLOPE * y, atol=0.04 + error)
        np.testing.assert_allclose(np.cov(weights.T), SPREAD**2 * np.eye(3), atol=0.08 + 1.5 * SPREAD * error)


def test_the_density_of_a_property_is_the_known_one(by_property):
    """0.04 nats are left, and 0.1 allowed; a y that is off by one would cost 1.7."""
    fresh = measured(10, 7)
    for y in (3.0, 6.0):
        moved = population(weights_of(fresh) + (y - fresh.info["size"])[..., None] * SLOPE)
        known = gaussians.log_normal(weights_of(moved), SLOPE * y, SPREAD**2 * np.eye(3))
        assert_density(known - by_property.given(y).log_densities(moved), 0.1)


def units_of(draws):
    """Incoming weights of all units, in a row."""
    return np.swapaxes(np.asarray(draws.params.network["layer0"]["weight"]), -1, -2).reshape(-1, 3)


@pytest.mark.slow
def test_each_label_has_its_own_density_on_spheres():
    """Units are vMF of another kind for each label. The other is 2.0 and 2.4 nats away; 0.3 are allowed."""
    posterior = von_mises.posterior()
    symmetry = of_function(posterior)
    parts = [von_mises.population(2000, 100, kind).with_info(kind=kind) for kind in range(2)]
    networks = [von_mises.rescaled(part, symmetry) for part in parts]
    method = ws.PopulationMatching(
        Geometric(),
        num_steps=600,
        batch_size=256,
        learning_rate=1e-2,
        average=0.98,
        architecture=Equivariant(tiny.DEEP, guided=False),
        solver=FixedSteps(18, diffrax.Bosh3(), num_nodes=8),
        conditions=ByLabel("kind", 2),
    )
    flow = method.run(KEY, posterior, draws=networks[0][:80].merge([networks[1][:80]]))
    for kind in range(2):
        fresh, bound = networks[kind][80:, :10], flow.given(kind)
        log_ratio = von_mises.log_population(fresh, kind) - bound.log_densities(fresh)
        assert_density(log_ratio, 0.3)
        assert np.mean(von_mises.log_population(fresh, kind) - flow.given(1 - kind).log_densities(fresh)) > 1.5
        units = units_of(bound.sample(jax.random.key(1), 2000))
        mean, second = von_mises.moments(von_mises.MEANS[kind], von_mises.CONCENTRATIONS[kind])
        np.testing.assert_allclose(units.mean(0), mean, atol=0.08 + 5 / np.sqrt(len(units)))
        np.testing.assert_allclose(units.T @ units / len(units), second, atol=0.08 + 5 / np.sqrt(len(units)))


@pytest.mark.slow
def test_networks_have_the_loss_that_they_are_asked_for():
    """Of a linear model, whose weights lie near a line. Given its loss a network is on a shell of no width.

    After this training losses spread around the one asked for by 0.06 to 0.26 of the population's deviation; twice
    that is allowed, and 0.1 to their mean.
    """
    target, generator = problem().posterior, np.random.default_rng(0)
    along = generator.uniform(0.0, 2.0, size=(400, 10, 1))
    draws = population(problem().mean + along * SLOPE + 0.05 * generator.normal(size=(400, 10, 3)))
    flow = trained(ByLoss(), Principal(SIZES), draws, num_steps=2000)
    losses = mean_losses(target, draws)
    for share in (0.1, 0.5, 0.9):
        wanted = np.quantile(losses, share)
        found = mean_losses(target, flow.given(wanted).sample(jax.random.key(1), 500))
        assert abs(np.mean(found) - wanted) < 0.1 * np.std(losses)
        assert np.std(found) < 0.5 * np.std(losses)


@pytest.mark.slow
def test_a_run_is_resumed_with_its_own_labels_only(tmp_path):
    draws, target = labelled(20, 0), problem().posterior
    method = ws.PopulationMatching(
        Euclidean(), num_steps=20, batch_size=16, architecture=Plain(SIZES), conditions=ByLabel("kind", 3)
    )
    first = method.run(KEY, target, draws=draws, store=tmp_path)
    again = method.run(KEY, target, draws=draws, store=tmp_path, resume=True)
    np.testing.assert_array_equal(first.given(1).log_densities(draws[:1]), again.given(1).log_densities(draws[:1]))
    with pytest.raises(InputError, match="must have the key"):
        others = draws.with_info(kind=np.asarray(draws.info["kind"])[::-1])
        method.run(KEY, target, draws=others, store=tmp_path, resume=True)
