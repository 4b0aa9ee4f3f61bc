"""Weight matching on every kind of network that the library has: planted elements come back."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import weightscape as ws
from weightscape.core import tree
from weightscape.geometry import WeightMatching
from weightscape.geometry.group_step import best_for_group
from weightscape.geometry.match import Task
from weightscape.geometry.weight_matching import Descent, descend
from weightscape.symmetry import discover

key = jax.random.key
networks = ws.networks
generator = np.random.default_rng(0)
vectors = generator.normal(size=(6, 3))
sequences = generator.normal(size=(6, 4, 3))
images = generator.normal(size=(6, 4, 4, 2))


def init_attention(key, x):
    shapes = {"query": (3, 2, 3), "key": (3, 2, 3), "value": (3, 2, 3), "out": (2, 3, 1)}
    return {name: jax.random.normal(jax.random.fold_in(key, i), shapes[name]) for i, name in enumerate(shapes)}


def attend(params, x):
    query, keys, value = (jnp.einsum("ptd,dhe->pthe", x, params[name]) for name in ("query", "key", "value"))
    weights = jax.nn.softmax(jnp.einsum("pthe,pshe->phts", query, keys))
    return jnp.einsum("phts,pshe,heo->po", weights, value, params["out"])


CASES = {
    "convnet": (networks.ConvNet(channels=(3,), kernel=3, hidden=(4,), activation="tanh", outputs=2), images),
    "resnet": (networks.ResNet(blocks=(1, 1), width=3, outputs=2), images),
    "lstm": (networks.LSTM(hidden=4, outputs=2), sequences),
    "skip": (networks.MLP(hidden=(4, 4), skip=True, outputs=2), vectors),
    "attention": (networks.Function(init_attention, attend), sequences),
}


SLOW = ("resnet", "attention")
"""Many groups, each with programs of its own."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in CASES])
def test_planted_elements_are_recovered(x64, name):
    network, x = CASES[name]
    params = tree.normal_like(key(0), network.init(key(0), jnp.asarray(x)))
    symmetry = discover(network, params, jnp.asarray(x)).without_scaling()
    copies = tree.stack([symmetry.apply(params, symmetry.random(key(i))) for i in range(4)])
    found = WeightMatching(num_restarts=6).match_many(key(0), symmetry, copies, params)
    # Permutations and signs move numbers without rounding.
    assert symmetry.groups and np.all(found.distance == 0) and np.max(found.distance_before) > 1


@pytest.mark.parametrize("name", ["lstm", "skip"])
def test_a_group_that_lies_on_a_leaf_twice_steps_only_closer(x64, name):
    network, x = CASES[name]
    params = tree.normal_like(key(0), network.init(key(0), jnp.asarray(x)))
    symmetry = discover(network, params, jnp.asarray(x)).without_scaling()
    others = tree.stack([tree.normal_like(key(10 + i), params) for i in range(40)])
    before = jnp.asarray([tree.norm(tree.subtract(params, tree.normal_like(key(10 + i), params))) for i in range(40)])
    task = Task(symmetry, others, params, before)
    start = Descent(task.identities(), np.asarray(before), np.zeros(40, int))
    once = descend(key(0), task, start, max_sweeps=1)
    assert np.all(once.distance <= before) and np.any(once.distance < before)
    # The step is that of a linearisation, which now and then leads away.
    step = best_for_group(task, 0, task.identities(), jnp.ones(1), wanted=np.ones(40, bool))
    assert np.any(task.distances(step) > before)
    np.testing.assert_allclose(once.distance, np.minimum(task.distances(step), before), rtol=1e-13)
