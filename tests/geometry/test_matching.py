"""Weight matching: exact where it must be, never further away, and planted elements come back."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.symmetry.by_hand import mlp_symmetry

import weightscape as ws
from weightscape.core import tree
from weightscape.core.checks import InputError
from weightscape.geometry import WeightMatching
from weightscape.geometry.group_step import best_for_group
from weightscape.geometry.match import Task
from weightscape.geometry.weight_matching import is_one_assignment

key = jax.random.key
ROUNDING = 1e-13
"""Distances after planted elements: weights of order one, a few dozen of them, each wrong by some units of 2⁻⁵³."""


def weights(hidden, seed=0):
    network = ws.networks.MLP(hidden=hidden, outputs=2)
    return tree.normal_like(key(seed), network.init(key(0), jnp.ones((1, 3))))


def many(hidden, seed, num=6):
    return tree.stack([weights(hidden, 100 * seed + i) for i in range(num)])


def planted(symmetry, params, num=6):
    elements = [symmetry.random(key(i)) for i in range(num)]
    return tree.stack([symmetry.apply(params, element) for element in elements])


def distance(left, right):
    return float(tree.norm(tree.subtract(left, right)))


PLAIN, SIGN, SCALING, BOTH = {}, {"sign": True}, {"scaling": True}, {"scaling": True, "sign": True}


@pytest.mark.parametrize(
    ("hidden", "kinds"), [((5,), PLAIN), ((5,), BOTH), ((5, 4), PLAIN), ((5, 4), SIGN), ((5, 4), SCALING)], ids=str
)
def test_planted_elements_are_recovered(x64, hidden, kinds):
    params = weights(hidden)
    symmetry = mlp_symmetry(params, **kinds)
    copies = planted(symmetry, params)
    found = WeightMatching(num_restarts=1).match_many(key(0), symmetry, copies, params)
    assert np.all(found.distance < ROUNDING) and np.all(found.distance_before > 1)
    for i in range(6):
        one, element = (jax.tree.map(lambda leaf, i=i: leaf[i], many) for many in (copies, found.element))
        assert distance(symmetry.apply(one, element), params) < ROUNDING


@pytest.mark.parametrize("sign", [False, True])
def test_one_hidden_layer_is_the_best_of_all_elements(x64, sign):
    params, reference = weights((4,), 1), weights((4,), 2)
    symmetry = mlp_symmetry(params, sign=sign)
    patterns = list(itertools.product((1, -1), repeat=4)) if sign else [(1, 1, 1, 1)]
    best = np.inf
    for order in itertools.permutations(range(4)):
        for signs in patterns:
            flip, order_of = np.array(signs), list(order)
            moved = {
                "layer0": {
                    "bias": params["layer0"]["bias"][jnp.array(order_of)] * flip,
                    "weight": params["layer0"]["weight"][:, jnp.array(order_of)] * flip[None],
                },
                "layer1": {
                    "bias": params["layer1"]["bias"],
                    "weight": params["layer1"]["weight"][jnp.array(order_of)] * flip[:, None],
                },
            }
            best = min(best, distance(moved, reference))
    found = WeightMatching().match(key(0), symmetry, params, reference)
    assert abs(float(found.distance) - best) < ROUNDING and int(found.num_sweeps) == 1


def test_scales_with_a_permutation_are_the_best_on_a_grid(x64):
    """Two units and one input: both permutations times a fine grid of both scales."""
    network = ws.networks.MLP(hidden=(2,), outputs=1)
    params, reference = (tree.normal_like(key(seed), network.init(key(0), jnp.ones((1, 1)))) for seed in (3, 4))
    symmetry = mlp_symmetry(params, scaling=True)
    grid = np.exp(np.linspace(-10, 10, 40_001))
    stacked = lambda weights: np.stack(
        [weights["layer0"]["weight"][0], weights["layer0"]["bias"], weights["layer1"]["weight"][:, 0]]
    )
    ours, wanted = stacked(params), stacked(reference)
    powers = np.stack([grid, grid, 1 / grid])
    cost = lambda i, j: np.min(np.sum((wanted[:, i, None] - powers * ours[:, j, None]) ** 2, axis=0))
    rest = float(params["layer1"]["bias"][0] - reference["layer1"]["bias"][0]) ** 2
    best = np.sqrt(rest + min(cost(0, 0) + cost(1, 1), cost(0, 1) + cost(1, 0)))
    found = float(WeightMatching().match(key(0), symmetry, params, reference).distance)
    # The grid misses the best u by at most 2.5e-4, and h bends by less than 100 there.
    assert best - 1e-4 < found < best + 1e-12


@pytest.mark.parametrize("kinds", [SIGN, SCALING], ids=str)
def test_unrelated_networks_come_no_further(x64, kinds):
    reference = weights((5, 4))
    symmetry = mlp_symmetry(reference, **kinds)
    others = many((5, 4), 1)
    found = WeightMatching(max_sweeps=4).match_many(key(0), symmetry, others, reference)
    assert np.all(found.distance <= found.distance_before)
    close = jax.tree.map(lambda leaf, new: leaf[None] + 0.1 * new, reference, others)
    found = WeightMatching(max_sweeps=4).match_many(key(0), symmetry, close, reference)
    assert np.all(found.distance <= found.distance_before)


def test_the_distances_are_those_of_the_element(x64):
    reference, other = weights((5, 4)), weights((5, 4), 1)
    symmetry = mlp_symmetry(reference, sign=True)
    found = WeightMatching().match(key(0), symmetry, other, reference)
    assert np.isclose(found.distance, distance(symmetry.apply(other, found.element), reference), rtol=1e-13)
    assert np.isclose(found.distance_before, distance(other, reference), rtol=1e-13)


def test_many_at_once_are_matched_as_each_alone(x64):
    reference, others = weights((5, 4)), many((5, 4), 1, num=6)
    symmetry = mlp_symmetry(reference, sign=True)
    matching = WeightMatching(num_restarts=2)
    together = matching.match_many(key(5), symmetry, others, reference)
    for i in range(3):
        alone = matching.match(key(5), symmetry, jax.tree.map(lambda leaf, i=i: leaf[i], others), reference)
        for one, other in zip(jax.tree.leaves(alone.element), jax.tree.leaves(together.element), strict=True):
            assert np.array_equal(one, other[i])
        assert int(alone.num_sweeps) == int(together.num_sweeps[i])


def test_no_step_of_one_group_is_left_to_take(x64):
    """The end of a descent is a fixed point: the best choice of each group is the one it has."""
    reference, others = weights((5, 4)), many((5, 4), 1)
    symmetry = mlp_symmetry(reference, sign=True)
    found = WeightMatching().match_many(key(0), symmetry, others, reference)
    task = Task(symmetry, others, reference, found.distance_before)
    for group in range(2):
        better = best_for_group(task, group, found.element, jnp.ones(2), wanted=np.ones(6, bool))
        np.testing.assert_allclose(task.distances(better), found.distance, rtol=1e-13)


def test_restarts_only_help(x64):
    reference, others = weights((5, 4)), many((5, 4), 1)
    symmetry = mlp_symmetry(reference)
    few = WeightMatching().match_many(key(0), symmetry, others, reference).distance
    more = WeightMatching(num_restarts=8).match_many(key(0), symmetry, others, reference).distance
    assert np.all(more <= few) and np.any(more < few)


def test_which_problems_one_assignment_solves():
    assert is_one_assignment(mlp_symmetry(weights((5,))))
    assert not is_one_assignment(mlp_symmetry(weights((5, 4))))


def test_errors(unchecked):
    params = weights((5,))
    symmetry = mlp_symmetry(params)
    with pytest.raises(InputError, match="`reference` of a matching must have the paths.*Discover the symmetry"):
        WeightMatching().match(key(0), symmetry, params, weights((4,)))
    with pytest.raises(InputError, match="`params` of a matching must have the paths.*end with"):
        WeightMatching().match(key(0), symmetry, weights((4,)), params)
    with pytest.raises(InputError, match="must be finite"):
        WeightMatching().match(key(0), symmetry, jax.tree.map(lambda leaf: leaf * np.nan, params), params)
    with pytest.raises(InputError, match="`num_restarts` of WeightMatching must be at least 0"):
        WeightMatching(num_restarts=-1)
