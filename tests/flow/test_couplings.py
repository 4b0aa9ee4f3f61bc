"""Couplings: exact assignments against scipy, entropic plans by what defines them, and what they store."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from weightscape.core.checks import InputError
from weightscape.core.config import decode, encode
from weightscape.flow.alignment import Aligned
from weightscape.flow.coupling_assignment import called_back, cheapest, compiled
from weightscape.flow.coupling_costs import SquaredGeodesics, squared_distances
from weightscape.flow.couplings import Chained, Entropic, Independent, OptimalTransport, with_costs
from weightscape.geometry import Sphere

pytestmark = pytest.mark.usefixtures("x64")
KEY = jax.random.key(0)


def problem(seed, count, size=3):
    """Sources, and targets that are skewed, badly scaled and far away."""
    key_source, key_target = jax.random.split(jax.random.key(seed))
    scales = jnp.logspace(-1, 1, size)[None]
    return (
        jax.random.normal(key_source, (count, size)),
        20.0 + scales * jnp.exp(jax.random.normal(key_target, (count, size))),
    )


@pytest.mark.parametrize("solve", [cheapest, compiled, called_back], ids=lambda solve: solve.__name__)
@pytest.mark.parametrize("size", [1, 2, 9])
def test_assignments_are_those_of_scipy(solve, size):
    costs = np.random.default_rng(size).normal(size=(2, 3, size, size))
    found = np.asarray(jax.jit(jax.vmap(jax.vmap(solve)))(costs)).reshape(6, size)
    for matrix, columns in zip(costs.reshape(6, size, size), found, strict=True):
        np.testing.assert_array_equal(columns, linear_sum_assignment(matrix)[1])


def test_squared_distances_are_those_of_scipy():
    sources, targets = problem(0, 8)
    # Far from the origin a plain expansion would lose 3 digits.
    np.testing.assert_allclose(
        squared_distances(sources, targets), cdist(sources, targets, "sqeuclidean"), rtol=1e-12, atol=1e-11
    )
    np.testing.assert_allclose(jnp.diag(squared_distances(targets, targets)), 0.0, atol=1e-10)


def test_geodesic_costs_take_the_place_of_distances_wherever_they_are():
    """On the sphere the angle is arccos of the product; costs reach both couplings of a chain."""
    rows = lambda seed: jax.random.normal(jax.random.key(seed), (12, 3))
    sources, targets = (x / jnp.linalg.norm(x, axis=1, keepdims=True) for x in (rows(0), rows(1)))
    known = np.arccos(np.asarray(sources @ targets.T)) ** 2
    costs = SquaredGeodesics(Sphere())
    np.testing.assert_allclose(costs.of(sources, targets), known, rtol=1e-10)
    changed = with_costs(Chained(OptimalTransport(), Entropic()), costs)
    assert changed.first.costs is costs and changed.then.costs is costs
    paired = np.asarray(changed.first.pair(KEY, sources, targets))
    np.testing.assert_array_equal(paired, np.asarray(targets)[linear_sum_assignment(known)[1]])
    assert with_costs(Independent(), costs) == Independent()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_optimal_transport_is_a_permutation_of_least_cost(seed):
    sources, targets = problem(seed, 32)
    paired = jax.jit(OptimalTransport().pair)(KEY, sources, targets)
    costs = cdist(sources, targets, "sqeuclidean")
    np.testing.assert_allclose(np.sum((sources - paired) ** 2), costs[linear_sum_assignment(costs)].sum(), rtol=1e-12)
    np.testing.assert_array_equal(np.unique(paired, axis=0), np.unique(targets, axis=0))


def test_minibatches_are_paired_alike_alone_and_together():
    sources, targets = jax.tree.map(lambda *parts: jnp.stack(parts), problem(0, 6), problem(1, 6))
    for coupling in (Independent(), OptimalTransport(), Entropic()):
        together = jax.vmap(coupling.pair, in_axes=(None, 0, 0))(KEY, sources, targets)
        alone = [coupling.pair(KEY, *both) for both in zip(sources, targets, strict=True)]
        np.testing.assert_array_equal(together, np.stack(alone))
    np.testing.assert_array_equal(Independent().pair(KEY, sources[0], targets[0]), targets[0])


@pytest.mark.parametrize("regularisation", [0.05, 0.5, 20.0])
def test_an_entropic_plan_has_its_marginals_and_its_form(regularisation):
    """Only one matrix has even marginals and the form log P_ij = a_i + b_j − C_ij/λ."""
    sources, targets = problem(3, 12)
    log_plan = np.asarray(Entropic(regularisation, 3000).log_plan(sources, targets))
    np.testing.assert_allclose(np.exp(log_plan).sum(0), 1.0, atol=1e-9)
    np.testing.assert_allclose(np.exp(log_plan).sum(1), 1.0, atol=1e-12)
    costs = cdist(sources, targets, "sqeuclidean")
    prices = log_plan + costs / (regularisation * costs.mean())
    centred = prices - prices.mean(0) - prices.mean(1, keepdims=True) + prices.mean()
    # Exponents reach C/λ = 200, and 3000 iterations of rounding add up.
    np.testing.assert_allclose(centred, 0.0, atol=1e-10)


def test_little_regularisation_is_optimal_transport():
    _, sources = problem(4, 6)
    targets = jnp.roll(sources, 1, axis=0) + 0.2 * jax.random.normal(KEY, sources.shape)
    coupling = Entropic(1e-3, 1000)
    assert np.exp(coupling.log_plan(sources, targets)).max(1).min() > 1 - 1e-7
    for seed in range(3):
        np.testing.assert_array_equal(
            coupling.pair(jax.random.key(seed), sources, targets), OptimalTransport().pair(KEY, sources, targets)
        )


@pytest.mark.parametrize("regularisation", [0.3, 1e6])
def test_sources_draw_their_targets_from_the_plan(regularisation):
    """Over many keys, each source by itself; with much regularisation the plan is even: pairs are independent."""
    sources, targets = problem(5, 5)
    coupling, number = Entropic(regularisation), 8000
    draw = jax.jit(jax.vmap(coupling.pair, in_axes=(0, None, None)))
    paired = np.asarray(draw(jax.random.split(KEY, number), sources, targets))
    drawn = np.argmin(np.abs(paired[:, :, None, 0] - np.asarray(targets)[None, None, :, 0]), axis=-1)
    plan = np.exp(coupling.log_plan(sources, targets))
    if regularisation > 1e3:
        np.testing.assert_allclose(plan, 0.2, atol=1e-5)
    # Five χ² tests; all of them pass but for one run in a million.
    for i in range(5):
        expected = number * plan[i] / plan[i].sum()
        assert stats.chisquare(np.bincount(drawn[:, i], minlength=5), expected).pvalue > 2e-7
    # Two sources draw on their own.
    both = np.bincount(5 * drawn[:, 0] + drawn[:, 1], minlength=25)
    assert (
        stats.chisquare(both, number * np.outer(plan[0], plan[1]).ravel() / plan[0].sum() / plan[1].sum()).pvalue > 2e-7
    )


def test_another_regularisation_compiles_nothing():
    traces = []

    @eqx.filter_jit
    def run(coupling):
        traces.append(None)
        return coupling.pair(KEY, *problem(0, 4))

    run(Entropic(0.1)), run(Entropic(0.2)), run(Entropic(3.0))
    assert len(traces) == 1


def test_couplings_are_stored_as_json():
    chain = Chained(OptimalTransport(), Aligned(4))
    for coupling in (Independent(), OptimalTransport(), Entropic(0.3, 7), Aligned(3), chain):
        encoded = encode(coupling)
        again = decode(json.loads(json.dumps(encoded.tree)), encoded.arrays)
        assert bool(eqx.tree_equal(again, coupling))


def test_bad_settings_are_named():
    with pytest.raises(InputError, match="`regularisation` of Entropic must be positive"):
        Entropic(0.0)
    with pytest.raises(InputError, match="`num_iterations` of Entropic must be at least 1"):
        Entropic(0.1, 0)
    with pytest.raises(InputError, match="`num_sweeps` of Aligned must be at least 1"):
        Aligned(0)
