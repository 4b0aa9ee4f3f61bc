"""Where symmetry ends: unknown operations, masks, activations that only look homogeneous or odd, false proposals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.symmetry.zoo import CASES, function, normal, single_precision_state, weights

from weightscape import networks as nn
from weightscape.core import InputError, InputTypeError
from weightscape.symmetry import confirm, discover, tracer
from weightscape.symmetry.assemble import groups_of

X = jnp.asarray(normal(6, 3))


def two_layers(first, second):
    """A network with two hidden layers of five and four units, and a function of each layer's values."""

    def apply(params, x):
        h = first(x @ params["one"])
        return second(h @ params["two"]) @ params["three"]

    return function(apply, one=(3, 5), two=(5, 4), three=(4, 2))


def kinds(network, x=X):
    symmetry = discover(network, network.init(jax.random.key(0), jnp.asarray(x)), x)
    return {group.members[0].path: group.kinds for group in symmetry.groups}, symmetry


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        (jax.nn.relu, ("permutation", "scaling")),
        (jax.nn.leaky_relu, ("permutation", "scaling")),
        (jnp.abs, ("permutation", "scaling", "sign")),
        (jnp.square, ("permutation", "scaling", "sign")),
        (jnp.sin, ("permutation", "sign")),
        (lambda z: jnp.where(z > 0, z, 0.2 * z), ("permutation", "scaling")),
        (lambda z: z * jnp.abs(z), ("permutation", "scaling", "sign")),
        (jax.nn.relu6, ("permutation",)),
        (lambda z: jnp.clip(z, 0.0, 50.0), ("permutation",)),
        (lambda z: jnp.maximum(z, 1e-3), ("permutation",)),
        (lambda z: jnp.tanh(z + 0.01), ("permutation",)),
        (jax.nn.gelu, ("permutation",)),
        (jax.nn.softplus, ("permutation",)),
        (lambda z: jax.nn.softmax(z, -1), ("permutation",)),
        (lambda z: jnp.cumsum(z, -1), None),
        (lambda z: jnp.sort(z, -1), None),
        (lambda z: z[:, ::-1] + z, ("scaling", "sign")),  # of the unit in the middle
    ],
)
def test_kinds_follow_the_activation(activation, expected):
    found, _ = kinds(two_layers(activation, jnp.tanh))
    assert found.get("one") == expected
    assert found["two"] == ("permutation", "sign")


def test_even_activations_need_no_flip_of_what_consumes_them():
    _, symmetry = kinds(two_layers(jnp.abs, jnp.tanh))
    flips = {member.path: member.sign_exponents for member in symmetry.groups[0].members}
    assert flips == {"one": (1,), "two": (0,)}


def test_squares_rescale_what_consumes_them_twice():
    _, symmetry = kinds(two_layers(jnp.square, jnp.tanh))
    assert {m.path: m.scale_exponents for m in symmetry.groups[0].members} == {"one": (1,), "two": (-2,)}


def test_an_unknown_operation_loses_its_group_and_no_other(monkeypatch):
    network = two_layers(jnp.tanh, jax.nn.relu)
    monkeypatch.delitem(tracer.RULES, "tanh")
    found, symmetry = kinds(network)
    assert found == {"two": ("permutation", "scaling")}
    assert symmetry.lost == (("tanh", ("one",)),)
    assert "no symmetry through tanh: one" in str(symmetry)
    params = network.init(jax.random.key(0), jnp.asarray(X))
    moved = symmetry.apply(params, symmetry.random(jax.random.key(1)))
    np.testing.assert_allclose(network.apply(moved, X), network.apply(params, X), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["convnet", "split_lstm", "attention", "dense_net"])
@pytest.mark.parametrize("operation", ["dot_general", "add", "mul", "reshape"])
def test_any_rule_may_be_missing(name, operation, monkeypatch):
    """Symmetry is lost, never wrong: what is left passes without the numerical check."""
    case = CASES[name]
    monkeypatch.delitem(tracer.RULES, operation)
    ledger, factorisation = tracer.follow(case.network.apply, weights(case), jnp.asarray(case.x))
    left = groups_of(ledger, factorisation)
    assert sum(group.size for group in left) <= sum(size for size, _ in case.groups)
    monkeypatch.undo()
    allowed = {(m.path, m.factor) for g in discover(case.network, weights(case), case.x).groups for m in g.members}
    assert {(member.path, member.factor) for group in left for member in group.members} <= allowed


@pytest.mark.parametrize("masked", ["one", "two"])
def test_a_fixed_random_mask_loses_exactly_its_groups(masked):
    """A mask on the first weights ties down the first units; one on the weights between ties down both layers."""
    masks = {"one": normal(3, 5), "two": normal(5, 4)}

    def apply(params, x):
        params = params | {masked: params[masked] * masks[masked]}
        return jnp.tanh(jnp.tanh(x @ params["one"]) @ params["two"]) @ params["three"]

    found, _ = kinds(function(apply, one=(3, 5), two=(5, 4), three=(4, 2)))
    assert set(found) == ({"two"} if masked == "one" else set())


def test_a_mask_along_other_axes_costs_nothing():
    mask = normal(3, 1)

    def apply(params, x):
        return jnp.tanh(x @ (params["one"] * jnp.asarray(mask, x.dtype))) @ params["two"]

    assert kinds(function(apply, one=(3, 5), two=(5, 2)))[0] == {"one": ("permutation", "sign")}


def test_what_is_computed_and_never_used_costs_nothing():
    def apply(params, x):
        jnp.cumsum(params["one"], 1) + jnp.sum(params["two"] ** 2)
        return jax.nn.relu(x @ params["one"]) @ params["two"]

    assert kinds(function(apply, one=(3, 5), two=(5, 2)))[0] == {"one": ("permutation", "scaling")}


def proposed(apply, **shapes):
    """The groups that structure proposes, before any numbers are looked at."""
    network = function(apply, **shapes)
    return groups_of(*tracer.follow(network.apply, network.init(jax.random.key(0), X), X))


def test_masks_are_seen_by_structure_alone():
    mask = normal(5)
    apply = lambda params, x: jnp.tanh(x @ params["one"] * jnp.asarray(mask)[None]) @ params["two"]
    assert proposed(apply, one=(3, 5), two=(5, 2)) == ()


def test_slices_are_seen_by_structure_alone():
    """Two units are squared, the others not; only the same may change places."""

    def apply(params, x):
        h = x @ params["one"]
        return jnp.sum(h[:, :2] ** 2, 1, keepdims=True) + jnp.sum(h[:, 2:], 1, keepdims=True)

    assert sorted(group.size for group in proposed(apply, one=(3, 5))) == [2, 3]


def test_signs_are_proposed_modulo_two():
    """A product of a unit's value with itself has no sign, so what consumes it is not flipped: no scale does that."""
    (group,) = proposed(lambda params, x: (x @ params["one"]) ** 2 @ params["two"], one=(3, 5), two=(5, 2))
    exponents = {member.path: (member.scale_exponents, member.sign_exponents) for member in group.members}
    assert exponents == {"one": ((1,), (1,)), "two": ((-2,), (0,))}


def test_parts_that_cannot_be_told_apart_are_not_proposed():
    """Units added to those in reverse order come in pairs, and which of a pair is which is not known."""
    network = two_layers(lambda z: z[:, ::-1] + z, jnp.tanh)
    found = proposed(network.apply, one=(3, 5), two=(5, 4), three=(4, 2))
    assert [group.size for group in found] == [1, 4]


def test_units_that_are_read_apart_stay_apart():
    """The first unit is an output of its own; the others may still be permuted."""

    def apply(params, x):
        h = jnp.tanh(x @ params["one"])
        return h[:, 1:] @ params["two"] + h[:, :1]

    _, symmetry = kinds(function(apply, one=(3, 5), two=(4, 2)))
    (group,) = symmetry.groups
    assert group.size == 4
    assert group.members[0].positions == (1, 2, 3, 4)


def test_a_false_proposal_is_found_out_by_numbers(monkeypatch):
    """tanh taken for a homogeneous function, and an activation for one that treats all units alike."""
    network = two_layers(jnp.tanh, jnp.tanh)
    linear = lambda ledger, equation, values: list(values)
    monkeypatch.setitem(tracer.RULES, "tanh", linear)
    monkeypatch.setitem(tracer.RULES, "cumsum", linear)
    assert kinds(network)[0] == {"one": ("permutation", "sign"), "two": ("permutation", "sign")}
    assert set(kinds(two_layers(lambda z: jnp.cumsum(z, -1), jnp.tanh))[0]) == {"two"}


def test_relu6_would_pass_at_small_weights(monkeypatch):
    """Which is why weights of several sizes are tried."""
    network = two_layers(jax.nn.relu6, jnp.tanh)
    for name in ("min", "clamp"):
        monkeypatch.setitem(
            tracer.RULES, name, lambda ledger, equation, values: [max(values, key=lambda v: len(v.axes))]
        )
    monkeypatch.setattr(confirm, "_SIZES", (0.01,))
    assert "scaling" in kinds(network)[0]["one"]
    monkeypatch.setattr(confirm, "_SIZES", (0.01, 10.0))
    assert kinds(network)[0]["one"] == ("permutation",)


def test_networks_that_refuse_double_precision_are_checked_in_their_own():
    network = function(single_precision_state, weight=(3, 4), recurrent=(4, 4), output=(4, 2))
    assert kinds(network, normal(5, 6, 3))[0] == {"weight": ("permutation", "sign")}


def test_shapes_do_for_weights_and_inputs():
    network = nn.MLP(hidden=(5,), outputs=2)
    x = jax.ShapeDtypeStruct((4, 3), jnp.float32)
    params = jax.eval_shape(network.init, jax.random.key(0), x)
    assert [group.kinds for group in discover(network, params, x).groups] == [("permutation", "sign")]


def test_errors_say_what_to_do(unchecked):
    network = nn.MLP(hidden=(5,), outputs=2)
    params = network.init(jax.random.key(0), jnp.asarray(X))
    with pytest.raises(InputTypeError, match="`network` of discover must be a Network, got function"):
        discover(lambda p, x: x, params, X)
    with pytest.raises(InputTypeError, match="got no params and no x"):
        discover(network)
    symmetry = discover(network, params, X)
    with pytest.raises(InputError, match="must have the shapes"):
        symmetry.apply(jax.tree.map(lambda leaf: leaf[None], params), symmetry.identity())
    hopeless = nn.Function(network.init, lambda p, x: network.apply(p, x) * jnp.nan)
    with pytest.raises(InputError, match="must have finite outputs"):
        discover(hopeless, params, X)
