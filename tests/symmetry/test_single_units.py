"""Layers of one unit: nothing to permute, and a flip or a scale where the activation allows it."""

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.metanet.examples import metanet
from tests.symmetry.by_hand import mlp_symmetry
from tests.symmetry.zoo import PF, PS, F, P, S, function, normal, split_lstm

import weightscape as ws
from weightscape.core import tree
from weightscape.geometry import WeightMatching, canonical
from weightscape.symmetry import discover, tracer
from weightscape.symmetry.assemble import groups_of
from weightscape.symmetry.degree_rules import NONE, PASS
from weightscape.symmetry.pointwise import pointwise

HIDDEN = [(1,), (1, 3), (3, 1), (1, 1)]
ALONE = {"tanh": F, "relu": S, "leaky_relu": S}
MANY = {"tanh": PF, "relu": PS, "leaky_relu": PS}
X = jnp.asarray(normal(6, 1))


def mlp(hidden, activation="tanh", x=X):
    """A network with one output, its weights, all different from zero, and its symmetry."""
    network = ws.networks.MLP(hidden=hidden, activation=activation, outputs=1)
    params = tree.normal_like(jax.random.key(1), network.init(jax.random.key(0), x))
    return network, params, discover(network, params, x)


def flip(symmetry, group=0, unit=0):
    """The element that flips one unit of a group."""
    identity = symmetry.identity()
    signs = list(identity.signs)
    signs[group] = signs[group].at[0, unit].set(-1)
    return dataclasses.replace(identity, signs=tuple(signs))


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("activation", ALONE)
def test_groups_of_one_are_found(activation, hidden):
    _, params, symmetry = mlp(hidden, activation)
    kinds = [(n, (ALONE if n == 1 else MANY)[activation]) for n in hidden]
    assert [(group.size, group.kinds) for group in symmetry.groups] == kinds
    by_hand = mlp_symmetry(params, scaling=activation != "tanh", sign=activation == "tanh")
    assert [set(g.members) for g in symmetry.groups] == [set(g.members) for g in trimmed_by_hand(by_hand, symmetry)]
    flips = sum(hidden) * math.log(2) if activation == "tanh" else 0.0
    assert symmetry.log_order == pytest.approx(flips + sum(math.lgamma(n + 1) for n in hidden))
    assert symmetry.num_scales == (0 if activation == "tanh" else sum(hidden))


def trimmed_by_hand(by_hand, symmetry):
    """Groups by hand, with the factors of the first weights and of the last ones counted as discovery counts them."""
    axes = {leaf.path: len(leaf.sizes) for leaf in symmetry.leaves}
    counted = lambda m: dataclasses.replace(m, factor=min(m.factor, axes[m.path] - 1))
    return [dataclasses.replace(g, members=tuple(map(counted, g.members))) for g in by_hand.groups]


@pytest.mark.parametrize("activation", ["softplus", "sigmoid"])
def test_other_activations_have_no_flip(activation):
    assert mlp((1,), activation)[2].groups == ()
    assert [(g.name, g.size, g.kinds) for g in mlp((1, 3), activation)[2].groups] == [("layer1", 3, P)]


def test_axes_of_size_one_have_a_factor_only_where_a_unit_lies():
    sizes = lambda hidden, x: [leaf.sizes for leaf in mlp(hidden, x=x)[2].leaves]
    assert sizes((1,), X) == [(1,), (1,), (), (1,)]
    assert sizes((1, 3), jnp.asarray(normal(6, 2))) == [(1,), (2, 1), (3,), (1, 3), (), (3,)]


def test_a_flip_leaves_the_function_unchanged(x64):
    network, params, symmetry = mlp((1,), x=jnp.asarray(normal(6, 2)))
    x = jnp.asarray(normal(6, 2), jnp.float64)
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), params)
    moved = symmetry.apply(params, flip(symmetry))
    by_hand = {"layer0": jax.tree.map(jnp.negative, params["layer0"]), "layer1": dict(params["layer1"])}
    by_hand["layer1"]["weight"] = -params["layer1"]["weight"]
    assert jax.tree.all(jax.tree.map(jnp.array_equal, moved, by_hand))
    np.testing.assert_allclose(network.apply(moved, x), network.apply(params, x), rtol=1e-14)


def test_one_unit_of_a_rectifier_is_rescaled(x64):
    network, params, symmetry = mlp((3, 1), "relu")
    params = jax.tree.map(lambda leaf: jnp.asarray(jnp.abs(leaf), jnp.float64), params)
    x = jnp.asarray(jnp.abs(X), jnp.float64)
    scales = tuple(jnp.full((1, group.size), math.log(2.0) * g) for g, group in enumerate(symmetry.groups))
    moved = symmetry.apply(params, dataclasses.replace(symmetry.identity(), log_scales=scales))
    # Three products and sums, each of rounding 2e-16.
    np.testing.assert_allclose(moved["layer1"]["weight"], 2 * params["layer1"]["weight"], rtol=1e-14)
    np.testing.assert_allclose(moved["layer2"]["weight"], params["layer2"]["weight"] / 2, rtol=1e-14)
    np.testing.assert_allclose(network.apply(moved, x), network.apply(params, x), rtol=1e-14)


def test_a_posterior_with_one_tanh_unit_has_two_copies():
    model = ws.Model(ws.networks.MLP(hidden=(1,)), ws.likelihoods.Gaussian(0.3), ws.priors.Normal(1.0))
    posterior = model.condition(ws.Batch(np.asarray(X), np.sin(np.asarray(X))))
    symmetry, position = discover(posterior), posterior.sample_prior_position(jax.random.key(2))
    assert symmetry.log_order == pytest.approx(math.log(2))
    moved = symmetry.apply(position, flip(symmetry))
    assert float(posterior.log_density(moved)) == pytest.approx(float(posterior.log_density(position)), rel=1e-6)
    assert tree.norm(tree.subtract(moved, position)) > 0.1


def test_a_flipped_unit_is_matched():
    _, params, symmetry = mlp((3, 1))
    other = symmetry.apply(params, flip(symmetry, 1))
    found = WeightMatching().match(jax.random.key(0), symmetry, other, params)
    assert found.distance_before > 0.1
    assert found.distance == 0


@pytest.mark.parametrize("hidden", [(3, 1), (3, 2)])
def test_flipped_units_have_one_canonical_form(hidden):
    """With one input, too: the signs of the first layer must not be read off weights to units that may be flipped."""
    _, params, symmetry = mlp(hidden)
    form = canonical(symmetry, params).params
    for group, size in enumerate(hidden):
        for unit in range(size):
            other = canonical(symmetry, symmetry.apply(params, flip(symmetry, group, unit))).params
            assert jax.tree.all(jax.tree.map(jnp.array_equal, form, other))


@pytest.mark.usefixtures("x64")
def test_metanets_commute_with_the_flip_of_one_unit():
    _, params, symmetry = mlp((1,))
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), params)
    module = metanet("", params, symmetry=symmetry)
    write = eqx.filter_jit(lambda module, weights: module(0.3, weights))
    moved, written = write(module, symmetry.apply(params, flip(symmetry))), write(module, params)
    expected = symmetry.apply(written, flip(symmetry))
    # Sums of some hundred terms of rounding 1e-16.
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12), moved, expected)
    assert float(tree.norm(tree.subtract(written, moved))) > 1e-3


def test_a_false_flip_of_one_unit_is_found_out_by_numbers(monkeypatch):
    odd = lambda ledger, equation, values: [pointwise(ledger, values, NONE, PASS)]
    monkeypatch.setitem(tracer.RULES, "logistic", odd)
    assert [mlp(hidden, "sigmoid")[2].groups for hidden in ((1,), (1, 1))] == [(), ()]


def proposed(apply, **shapes):
    network = function(apply, **shapes)
    x = jnp.asarray(normal(6, 3))
    found = groups_of(*tracer.follow(network.apply, network.init(jax.random.key(0), x), x))
    return [(group.size, group.kinds) for group in found if "one" in {member.path for member in group.members}]


@pytest.mark.parametrize(
    "spread",
    [
        lambda h: h * jnp.ones((1, 4), h.dtype),
        lambda h: jnp.tile(h, (1, 4)),
        lambda h: jnp.broadcast_to(h, (6, 4)),
        lambda h: jnp.squeeze(h, 1)[:, None] + jnp.zeros((6, 4), h.dtype),
        lambda h: (h[:, :, None] * jnp.ones((1, 1, 4), h.dtype)).reshape(6, 4),
    ],
)
def test_a_unit_that_is_repeated_or_merged_stays(spread):
    """The weights that consume it have no axis for it, so that no flip of theirs makes up for its own."""
    apply = lambda params, x: spread(jnp.tanh(x @ params["one"])) @ params["two"]
    assert proposed(apply, one=(3, 1), two=(4, 2)) == []


def test_a_unit_keeps_its_flip_through_new_axes():
    apply = lambda params, x: jnp.tanh((x @ params["one"])[:, :, None] + params["b"][None])[:, :, 0] @ params["two"]
    assert proposed(apply, one=(3, 1), b=(1, 1), two=(1, 2)) == [(1, F)]


def test_a_unit_may_be_one_place_of_an_axis():
    """Four gates of one unit side by side, and its value next to the inputs."""
    network, x = function(split_lstm, weight=(3 + 1, 4), bias=(4,), output=(1, 2)), jnp.asarray(normal(4, 6, 3))
    symmetry = discover(network, network.init(jax.random.key(0), x), x)
    assert [(group.size, group.kinds) for group in symmetry.groups] == [(1, F)]
