"""Activation, straight-through and Sinkhorn matching; planted elements and their own laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.symmetry.by_hand import mlp_symmetry

import weightscape as ws
from weightscape.core import tree
from weightscape.core.checks import InputError
from weightscape.geometry import ActivationMatching, SinkhornMatching, StraightThrough, WeightMatching
from weightscape.geometry.match import Task
from weightscape.geometry.sinkhorn import annealed
from weightscape.symmetry import discover

key = jax.random.key
x = np.random.default_rng(0).normal(size=(40, 3))


def network_and_weights(activation, hidden=(5, 4)):
    network = ws.networks.MLP(hidden=hidden, activation=activation, outputs=2)
    return network, tree.normal_like(key(0), network.init(key(0), jnp.asarray(x)))


def planted(symmetry, params):
    return tree.stack([symmetry.apply(params, symmetry.random(key(i), scale_spread=0.5)) for i in range(4)])


@pytest.mark.parametrize(("activation", "kinds"), [("tanh", {"sign": True}), ("relu", {"scaling": True})])
def test_activation_matching_recovers_planted_elements(x64, activation, kinds):
    network, params = network_and_weights(activation)
    symmetry = mlp_symmetry(params, **kinds)
    matching = ActivationMatching(network, x)
    found = matching.match_many(key(0), symmetry, planted(symmetry, params), params)
    # Standard deviations of 40 values of order one are right to some units of 2⁻⁵³.
    assert np.all(found.distance < 1e-12) and np.all(found.distance_before > 1)


def test_activation_matching_takes_the_largest_correlations(x64):
    network, params = network_and_weights("tanh", hidden=(5,))
    other = tree.normal_like(key(1), params)
    symmetry = mlp_symmetry(params, sign=True)
    found = ActivationMatching(network, x).match(key(0), symmetry, other, params).element
    values = [x @ w["layer0"]["weight"] + w["layer0"]["bias"][None] for w in (params, other)]
    correlations = np.corrcoef(values[0].T, values[1].T)[:5, 5:]
    chosen = correlations[np.arange(5), found.permutations[0]]
    assert np.all(np.sign(chosen) == found.signs[0][0])
    generator = np.random.default_rng(1)
    for order in [generator.permutation(5) for _ in range(200)]:
        assert np.abs(chosen).sum() >= np.abs(correlations[np.arange(5), order]).sum() - 1e-12


def test_activation_matching_of_convolutions_and_skips(x64):
    generator = np.random.default_rng(2)
    images = generator.normal(size=(10, 4, 4, 2))
    for network, inputs in (
        (ws.networks.ConvNet(channels=(3,), kernel=3, hidden=(4,), activation="tanh", outputs=2), images),
        (ws.networks.MLP(hidden=(4, 4), skip=True, outputs=2), x),
    ):
        params = tree.normal_like(key(0), network.init(key(0), jnp.asarray(inputs)))
        symmetry = discover(network, params, inputs)
        found = ActivationMatching(network, inputs).match_many(key(0), symmetry, planted(symmetry, params), params)
        assert np.all(found.distance < 1e-12) and np.all(found.distance_before > 1)


def test_activation_matching_names_a_group_that_no_layer_makes(unchecked):
    def init(key, tokens):
        return {"table": jax.random.normal(key, (5, 3)), "out": jax.random.normal(key, (3, 1))}

    network = ws.networks.Function(init, lambda params, tokens: jnp.tanh(tokens @ params["table"] ** 2) @ params["out"])
    inputs = jnp.eye(5)
    params = network.init(key(0), inputs)
    symmetry = discover(network, params, inputs)
    with pytest.raises(InputError, match="got none for table. Use WeightMatching"):
        ActivationMatching(network, inputs).match(key(0), symmetry, params, params)


@pytest.mark.parametrize("kinds", [{}, {"sign": True}], ids=str)
def test_sinkhorn_matching_recovers_planted_elements(x64, kinds):
    _, params = network_and_weights("tanh")
    symmetry = mlp_symmetry(params, **kinds)
    found = SinkhornMatching().match_many(key(0), symmetry, planted(symmetry, params), params)
    assert np.all(found.distance == 0) and np.all(found.distance_before > 1)


def test_soft_permutations_harden(x64):
    """At the last temperature, a hundredth of the gains' spread, nothing but permutations is left."""
    _, params = network_and_weights("tanh")
    symmetry = mlp_symmetry(params)
    task = Task(symmetry, planted(symmetry, params), params, jnp.ones(4))
    for soft in annealed(SinkhornMatching(), task):
        assert np.all(np.max(soft.plan, axis=-1) > 0.99) and np.all(np.max(soft.plan, axis=-2) > 0.99)


def test_sinkhorn_matching_recovers_scales(x64):
    _, params = network_and_weights("relu", hidden=(5,))
    symmetry = mlp_symmetry(params, scaling=True)
    found = SinkhornMatching().match_many(key(0), symmetry, planted(symmetry, params), params)
    assert np.all(found.distance < 1e-12) and np.all(found.distance_before > 1)


def test_straight_through_lowers_the_loss_at_the_midpoint(x64):
    network, params = network_and_weights("tanh")
    other = tree.normal_like(key(1), params)
    symmetry = mlp_symmetry(params, sign=True)
    y = network.apply(params, jnp.asarray(x))
    loss = lambda weights: jnp.mean((network.apply(weights, jnp.asarray(x)) - y) ** 2)
    midpoint = lambda element: float(loss(tree.scale(0.5, tree.add(params, symmetry.apply(other, element)))))
    matching = StraightThrough(loss, num_steps=30, learning_rate=0.1)
    found = matching.match(key(0), symmetry, other, params)
    by_weights = WeightMatching().match(key(0), symmetry, other, params)
    assert midpoint(found.element) < midpoint(by_weights.element)


def test_straight_through_recovers_planted_elements(x64):
    network, params = network_and_weights("tanh")
    symmetry = mlp_symmetry(params, sign=True)
    y = network.apply(params, jnp.asarray(x))
    matching = StraightThrough(lambda w: jnp.mean((network.apply(w, jnp.asarray(x)) - y) ** 2), num_steps=2)
    copies = jax.tree.map(lambda leaf: leaf[:2], planted(symmetry, params))
    found = matching.match_many(key(0), symmetry, copies, params)
    assert np.all(found.distance == 0) and np.all(found.distance_before > 1)
