"""A merged network is the average of the networks, counted by their weights."""

import dataclasses

import jax
import numpy as np
import pytest
from tests.geometry.scrambled import flat, known

import weightscape as ws
from weightscape.core import InputError
from weightscape.geometry.compact import compact
from weightscape.geometry.merge import merge
from weightscape.geometry.weight_moments import flat_positions
from weightscape.symmetry import of_draws


@pytest.fixture(autouse=True)
def _double(x64):
    """Exactness is claimed in double precision."""


def test_the_average_of_positions_with_and_without_weights():
    made = known(inferred_noise=True)
    rows = flat_positions(made.draws)
    merged = merge(made.draws, rebased=False, posterior=made.posterior)
    assert merged.log_density.shape == (1, 1) and merged.facts["num_merged"] == 200
    position = jax.tree.map(lambda leaf: leaf[0, 0], merged.positions())
    np.testing.assert_allclose(flat(position), rows.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(flat(position), compact(made.draws, rebased=False).location, rtol=1e-12)
    np.testing.assert_allclose(merged.log_density[0, 0], made.posterior.log_density(position), rtol=1e-12)
    weights = np.arange(200.0).reshape(4, 50)
    uneven = flat(merge(made.draws, weights=weights, rebased=False).positions())
    np.testing.assert_allclose(uneven, np.average(rows, axis=0, weights=weights.ravel()), rtol=1e-12)
    carried = dataclasses.replace(made.draws, log_weights=np.log(weights + 1e-300))
    np.testing.assert_allclose(flat(merge(carried, rebased=False).positions()), uneven, rtol=1e-12)


def test_a_single_network_is_its_own_average_and_predicts():
    lone = known().draws[2, 7]
    merged = merge(lone, rebased=False)
    assert jax.tree.all(jax.tree.map(np.array_equal, merged.params, lone.params))
    assert np.isnan(merged.log_density).all()
    x = np.random.default_rng(0).normal(size=(3, 2))
    np.testing.assert_allclose(ws.predict(merged, x).mean, ws.predict(lone, x).mean, rtol=1e-12)


def test_equivalent_networks_in_any_order_merge_to_the_same_function():
    made = known()
    x = np.random.default_rng(0).normal(size=(5, 2))
    truth = ws.predict(merge(made.draws, rebased=False), x).mean
    # By way of another order of the units: sums of a few numbers in another order.
    np.testing.assert_allclose(ws.predict(merge(made.scrambled), x).mean, truth, rtol=1e-9)
    apart = ws.predict(merge(made.scrambled, rebased=False), x).mean
    assert np.max(np.abs(apart - truth)) > 0.1


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.ones(3), "must have shape"),
        (np.array([[1.0, -1.0]]), "not be negative"),
        (np.zeros((1, 2)), "some positive"),
    ],
)
def test_weights_that_are_none_are_refused(weights, words):
    with pytest.raises(InputError, match=words):
        merge(known().draws[:1, :2], weights=weights, rebased=False)


NETWORKS = {
    "mlp": (ws.networks.MLP(hidden=(5, 4)), (6, 3)),
    "convnet": (ws.networks.ConvNet(channels=(3, 4), kernel=3, hidden=(5,), activation="tanh"), (6, 6, 6, 2)),
    "lstm": (ws.networks.LSTM(hidden=4), (6, 5, 3)),
}


@pytest.mark.parametrize("name", ["mlp", *(pytest.param(n, marks=pytest.mark.slow) for n in ("convnet", "lstm"))])
def test_copies_of_any_network_merge_to_its_function(name):
    network, shape = NETWORKS[name]
    x = np.random.default_rng(3).normal(size=shape)
    model = ws.Model(network, ws.likelihoods.Gaussian(0.5), ws.priors.Normal(1.0))
    posterior = model.condition(ws.Batch(x, np.zeros(6)))
    one = ws.point(posterior, posterior.sample_prior_position(jax.random.key(0)))
    symmetry = of_draws(one)
    assert len(symmetry.groups) > 0
    elements = jax.jit(jax.vmap(jax.vmap(symmetry.random)))(jax.random.split(jax.random.key(1), (1, 4)))
    copies = symmetry.apply(one[:, [0] * 4], elements)
    # Sums of some tens of numbers of order one, in another order.
    truth = ws.predict(one, x).mean
    np.testing.assert_allclose(ws.predict(merge(copies), x).mean, truth, atol=1e-10)
    assert np.max(np.abs(ws.predict(merge(copies, rebased=False), x).mean - truth)) > 0.01
