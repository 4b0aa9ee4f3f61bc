"""Elements form a group that acts on weights; how many there are; symmetries of posteriors and draws."""

import dataclasses
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.symmetry.by_hand import mlp_symmetry
from tests.symmetry.zoo import CASES, weights

import weightscape as ws
from weightscape.symmetry import discover, of_draws
from weightscape.symmetry.assemble import leaf_factors_of
from weightscape.symmetry.null_space import null_space

NAMES = ("relu", "split_lstm", "attention", "fused_attention", "dense_net")


def close(left, right, tolerance):
    return all(
        np.allclose(a, b, rtol=tolerance, atol=tolerance)
        for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    )


@pytest.mark.parametrize("name", NAMES)
def test_elements_form_a_group_that_acts(name, x64):
    case = CASES[name]
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), weights(case))
    symmetry = discover(case.network, params, jnp.asarray(case.x, jnp.float64))
    a, b, c = (symmetry.random(jax.random.key(i)) for i in range(3))
    act, compose = symmetry.apply, symmetry.compose
    assert close(act(params, compose(b, a)), act(act(params, a), b), 1e-12)
    assert close(compose(c, compose(b, a)), compose(compose(c, b), a), 1e-12)
    assert close(compose(symmetry.invert(a), a), symmetry.identity(), 1e-12)
    assert close(compose(a, symmetry.invert(a)), symmetry.identity(), 1e-12)
    assert close(act(act(params, a), symmetry.invert(a)), params, 1e-12)
    assert close(act(params, symmetry.identity()), params, 0.0)
    assert not close(act(params, a), params, 1e-3)


@pytest.mark.parametrize(("activation", "kind"), [("tanh", "sign"), ("relu", "scaling")])
def test_discovery_agrees_with_what_is_written_down_by_hand(activation, kind):
    network, x = ws.networks.MLP(hidden=(5, 4), activation=activation, outputs=2), jnp.ones((3, 3))
    params = network.init(jax.random.key(0), x)
    by_hand, found = mlp_symmetry(params, **{kind: True}), discover(network, params, x)
    assert by_hand.log_order == pytest.approx(found.log_order)
    element = found.random(jax.random.key(1))
    assert close(by_hand.apply(params, element), found.apply(params, element), 1e-6)


def test_the_order_of_tanh_layers_is_that_of_signed_permutations():
    symmetry = discover(CASES["tanh"].network, weights(CASES["tanh"]), CASES["tanh"].x)
    expected = sum(math.lgamma(n + 1) + n * math.log(2) for n in (5, 4))
    assert symmetry.log_order == pytest.approx(expected)
    assert f"equivalent copies: {expected:.1f}" in str(symmetry)


def test_the_order_counts_different_sets_of_weights():
    """Every combination of signs and orders in a small attention block, counted by what it does to the weights."""
    case = CASES["attention"]
    symmetry = discover(case.network, weights(case), case.x)
    symmetry = smaller(symmetry, [group for group in symmetry.groups if group.size <= 3])
    ways = [
        (g, k, i) for g, group in enumerate(symmetry.groups) for k in range(group.num_signs) for i in range(group.size)
    ]
    orders = [list(itertools.permutations(range(group.size))) for group in symmetry.groups]
    identity, params = symmetry.identity(), weights(case)
    flips = np.array(list(itertools.product((1, -1), repeat=len(ways))))

    def moved(flip):
        signs = list(identity.signs)
        for value, (g, k, i) in zip(flip, ways, strict=True):
            signs[g] = signs[g].at[k, i].set(value)
        element = type(identity)(identity.permutations, tuple(signs), identity.log_scales)
        return jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(symmetry.apply(params, element))])

    copies = {row.tobytes() for row in np.asarray(jax.jit(jax.vmap(moved))(jnp.asarray(flips)))}
    num_orders = math.prod(map(len, orders))
    assert symmetry.log_order == pytest.approx(math.log(len(copies) * num_orders))
    assert len(copies) < len(flips)


def smaller(symmetry, groups):
    return dataclasses.replace(symmetry, groups=tuple(groups), leaves=leaf_factors_of(groups, symmetry.leaves))


@pytest.mark.parametrize("modulus", [None, 2])
def test_null_spaces_against_brute_force(modulus):
    generator = np.random.default_rng(2)
    for _ in range(20):
        matrix = generator.integers(-1, 2, size=(3, 6))
        basis = null_space([dict(enumerate(map(int, row))) for row in matrix], range(6), modulus=modulus)
        vectors = np.array([[float(vector.get(j, 0)) for j in range(6)] for vector in basis]).reshape(-1, 6)
        if modulus is None:
            assert np.allclose(matrix @ vectors.T, 0)
            assert len(basis) == 6 - np.linalg.matrix_rank(matrix)
        else:
            solutions = [v for v in itertools.product((0, 1), repeat=6) if not np.any(matrix @ v % 2)]
            assert 2 ** len(basis) == len(solutions)
            assert np.all(matrix @ vectors.T % 2 == 0)


PRIORS = {
    "normal": (ws.priors.Normal(1.0), ("permutation", "sign")),
    "horseshoe": (ws.priors.Horseshoe(), ("permutation", "sign")),
    "by_path": (
        ws.priors.ByPath({"layer0/*": ws.priors.Normal(0.5), "layer1/*": ws.priors.Laplace(1.0)}),
        ("permutation", "sign"),
    ),
}


def posterior_of(prior, activation="tanh"):
    data = ws.data.load("iris")
    model = ws.Model(ws.networks.MLP(hidden=(4,), activation=activation), ws.likelihoods.Categorical(3), prior)
    return model.condition(data.train)


@pytest.mark.parametrize("name", PRIORS)
def test_posteriors_are_unchanged_with_their_priors(name):
    prior, expected = PRIORS[name]
    posterior = posterior_of(prior)
    symmetry = discover(posterior)
    assert [group.kinds for group in symmetry.groups] == [expected]
    position = posterior.sample_prior_position(jax.random.key(0))
    moved = symmetry.apply(position, symmetry.random(jax.random.key(1)))
    assert posterior.log_density(moved) == pytest.approx(float(posterior.log_density(position)), rel=1e-5)
    paths = {member.path for member in symmetry.groups[0].members}
    assert {path for path in symmetry.layout.paths if "layer0" in path} <= paths


def test_priors_that_break_a_symmetry_take_it_away():
    assert [g.kinds for g in discover(posterior_of(ws.priors.Normal(1.0), "relu")).groups] == [("permutation",)]


def test_draws_move_and_predict_the_same():
    posterior = posterior_of(ws.priors.Horseshoe())
    draws = ws.DeepEnsemble(num_members=3, num_steps=20).run(jax.random.key(0), posterior)
    symmetry = of_draws(draws)
    keys = jax.random.split(jax.random.key(1), draws.log_density.shape)
    elements = jax.vmap(jax.vmap(symmetry.random))(keys)
    for element in (elements, symmetry.random(jax.random.key(2))):
        moved = symmetry.apply(draws, element)
        x = np.asarray(draws.example.x)
        np.testing.assert_allclose(
            ws.predict(moved, x).probabilities, ws.predict(draws, x).probabilities, rtol=1e-4, atol=1e-6
        )
        position = lambda d: jax.tree.map(lambda leaf: leaf[1, 0], d.positions())
        before, after = (posterior.log_density(position(d)) for d in (draws, moved))
        assert float(after) == pytest.approx(float(before), rel=1e-4)
        assert not close(moved.params.network, draws.params.network, 1e-3)
