"""Equivalent networks have one canonical form, which is equivalent to them, and there is a way back."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.geometry.networks_by_hand import attention, recurrence
from tests.symmetry.by_hand import mlp_symmetry

from weightscape.geometry.canonical import canonical, unit_scales
from weightscape.networks import LSTM, MLP, ConvNet, ResNet
from weightscape.symmetry import Element, discover

KEY = jax.random.key(0)
# A few dozen roundings of relative size 1e-16, through scales of up to e^3.
TOLERANCE = 1e-11


@pytest.fixture(autouse=True)
def _double(x64):
    """Exactness is claimed in double precision."""


def multilayer(activation: str, **kinds: bool):
    """A perceptron and its symmetry by hand: parameters, symmetry, and the network with its inputs."""
    network, x = MLP(hidden=(6, 5), activation=activation, outputs=2), np.random.default_rng(2).normal(size=(4, 3))
    params = filled(network, x)
    return params, mlp_symmetry(params, **kinds), lambda params: network.apply(params, jnp.asarray(x))


def discovered(network, shape: tuple[int, ...]):
    x = jnp.asarray(np.random.default_rng(2).normal(size=shape))
    params = filled(network, x)
    return params, discover(network, params, x), lambda params: network.apply(params, x)


def filled(network, x):
    generator, like = np.random.default_rng(1), jax.eval_shape(network.init, KEY, jnp.asarray(x))
    return jax.tree.map(lambda leaf: jnp.asarray(generator.normal(size=leaf.shape) / 2), like)


USUAL = {
    "relu": lambda: multilayer("relu", scaling=True),
    "recurrent tanh": lambda: recurrence(sign=True),
    "convolution": lambda: discovered(ConvNet(channels=(3,), kernel=3, hidden=(4,), outputs=2), (2, 4, 4, 1)),
}
RARE = {
    "attention": lambda: attention(),
    "tanh": lambda: multilayer("tanh", sign=True),
    "recurrent relu": lambda: recurrence(scaling=True),
    "gates": lambda: discovered(LSTM(hidden=4, outputs=2), (2, 3, 2)),
    "skips": lambda: discovered(MLP(hidden=(5, 5), activation="relu", skip=True, outputs=2), (4, 3)),
    "residual": lambda: discovered(ResNet(blocks=(1, 1), width=4, outputs=2), (2, 8, 8, 3)),
    "softplus": lambda: multilayer("softplus"),
}


def assert_near(left, right):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE), left, right)


def random_elements(symmetry, number: int) -> Element:
    """Drawn by NumPy, which compiles nothing."""
    generator, sizes = np.random.default_rng(3), [group.size for group in symmetry.groups]
    orders = tuple(np.stack([generator.permutation(size) for _ in range(number)]) for size in sizes)
    signs = tuple(generator.choice([-1, 1], (number, g.num_signs, g.size)) for g in symmetry.groups)
    scales = tuple(generator.normal(size=(number, g.num_scalings, g.size)) for g in symmetry.groups)
    return jax.tree.map(jnp.asarray, Element(orders, signs, scales))


@eqx.filter_jit
def moved(symmetry, params, elements):
    return jax.vmap(symmetry.apply)(params, elements)


@eqx.filter_jit
def forms_of(symmetry, params):
    return jax.vmap(lambda one: canonical(symmetry, one))(params)


def assert_one_form(symmetry, params):
    copies = jax.tree.map(lambda leaf: jnp.asarray(np.stack([leaf] * 12)), params)
    forms = forms_of(symmetry, moved(symmetry, copies, random_elements(symmetry, 12))).params
    jax.tree.map(lambda leaf: assert_near(leaf, np.stack([leaf[0]] * 12)), jax.tree.map(np.asarray, forms))


@pytest.mark.parametrize("make", USUAL.values(), ids=USUAL)
def test_laws(make):
    assert_laws(*make())


@pytest.mark.slow
@pytest.mark.parametrize("make", RARE.values(), ids=RARE)
def test_laws_of_slower_networks(make):
    assert_laws(*make())


def assert_laws(params, symmetry, function):
    """Equivalent networks have one form, another one has another; it is idempotent, and there is a way back."""
    other = jax.tree.map(lambda leaf: np.asarray(leaf) + 0.1 * (np.arange(leaf.size) == 0).reshape(leaf.shape), params)
    both = jax.tree.map(lambda a, b: jnp.asarray(np.stack([a] * 6 + [b] * 6)), params, other)
    networks = moved(symmetry, both, random_elements(symmetry, 12))
    forms = forms_of(symmetry, networks)
    first, last = (jax.tree.map(lambda leaf, i=i: np.asarray(leaf)[i], forms.params) for i in (0, -1))
    assert_near(forms.params, jax.tree.map(lambda a, b: np.stack([a] * 6 + [b] * 6), first, last))
    assert max(jax.tree.leaves(jax.tree.map(lambda a, b: np.max(np.abs(a - b)), first, last))) > 1e-3

    assert_near(forms_of(symmetry, forms.params).params, forms.params)
    back = jax.vmap(symmetry.invert)(forms.element)
    assert_near(moved(symmetry, forms.params, back), networks)
    assert_near(function(jax.tree.map(jnp.asarray, first)), function(params))


def test_incoming_weights_have_norm_one_and_the_last_layer_keeps_its_scale():
    params, symmetry, _ = multilayer("relu", scaling=True)
    for form in (canonical(symmetry, params).params, unit_scales(symmetry, params).params):
        for i in range(2):
            np.testing.assert_allclose(jnp.linalg.norm(form[f"layer{i}"]["weight"], axis=0), 1.0, rtol=TOLERANCE)
        np.testing.assert_allclose(form["layer2"]["bias"], params["layer2"]["bias"], rtol=TOLERANCE)
    larger = params | {"layer2": jax.tree.map(lambda leaf: 2 * leaf, params["layer2"])}
    first, second = unit_scales(symmetry, params).params, unit_scales(symmetry, larger).params
    np.testing.assert_allclose(second["layer2"]["weight"], 2 * first["layer2"]["weight"], rtol=TOLERANCE)


JOINED = {
    "relu": (USUAL["relu"], [("layer0/weight", "layer0/bias"), ("layer1/weight", "layer1/bias")]),
    "convolution": (USUAL["convolution"], [("conv0/kernel", "conv0/bias"), ("dense0/weight", "dense0/bias")]),
    "recurrent relu": (RARE["recurrent relu"], [("input", "bias")]),
}


def leaf_at(tree, path: str):
    for name in path.split("/"):
        tree = tree[name]
    return np.asarray(tree)


@pytest.mark.parametrize(("make", "places"), JOINED.values(), ids=JOINED)
def test_weights_and_shift_have_norm_one_together(make, places):
    """Units lie along the last axis. Rescaled networks have the same form, and permuted ones are permuted."""
    params, symmetry, function = make()
    form = unit_scales(symmetry, params, with_shifts=True).params
    for paths in places:
        squares = [np.sum(leaf**2, axis=tuple(range(leaf.ndim - 1))) for leaf in (leaf_at(form, p) for p in paths)]
        np.testing.assert_allclose(sum(squares), 1.0, rtol=TOLERANCE)
    assert_near(function(form), function(params))
    element = jax.tree.map(lambda leaf: leaf[0], random_elements(symmetry, 1))
    permuting = Element(element.permutations, element.signs, tuple(map(jnp.zeros_like, element.log_scales)))
    again = unit_scales(symmetry, symmetry.apply(params, element), with_shifts=True).params
    assert_near(again, symmetry.apply(form, permuting))


def test_without_shifts_nothing_is_added():
    network, x = MLP(hidden=(6, 5), activation="relu", outputs=2, bias=False), jnp.ones((4, 3))
    params = filled(network, x)
    symmetry = discover(network, params, x)
    plain, joined = (unit_scales(symmetry, params, with_shifts=option).params for option in (False, True))
    jax.tree.map(np.testing.assert_array_equal, plain, joined)


def test_units_next_to_nothing_stay_bounded_with_their_shifts():
    """b / ‖w‖ is 1e4, (w, b) / ‖(w, b)‖ at most 1; where both are zero a unit keeps its scale."""
    params, symmetry, function = multilayer("relu", scaling=True)
    direction = params["layer0"]["weight"][:, 2] / jnp.linalg.norm(params["layer0"]["weight"][:, 2])
    params["layer0"]["weight"] = params["layer0"]["weight"].at[:, 2].set(1e-14 * direction).at[:, 4].set(0.0)
    params["layer0"]["bias"] = params["layer0"]["bias"].at[2].set(1e-10).at[4].set(0.0)
    plain, joined = (unit_scales(symmetry, params, with_shifts=option).params for option in (False, True))
    np.testing.assert_allclose(plain["layer0"]["bias"][2], 1e4, rtol=TOLERANCE)
    np.testing.assert_allclose(joined["layer0"]["bias"][2], 1.0, rtol=1e-8)
    np.testing.assert_allclose(joined["layer0"]["weight"][:, 2], 1e-4 * direction, rtol=1e-8)
    assert all(np.max(np.abs(leaf)) <= 1 + TOLERANCE for i in range(2) for leaf in joined[f"layer{i}"].values())
    np.testing.assert_array_equal(joined["layer0"]["weight"][:, 4], 0.0)
    assert_near(function(joined), function(params))


def test_scales_alone_keep_order_and_signs():
    params, symmetry, _ = multilayer("relu", scaling=True)
    element = unit_scales(symmetry, params).element
    for permutation in element.permutations:
        np.testing.assert_array_equal(permutation, np.arange(len(permutation)))
    norms = jnp.linalg.norm(params["layer0"]["weight"], axis=0)
    np.testing.assert_allclose(element.log_scales[0][0], -jnp.log(norms), rtol=TOLERANCE)


def test_a_unit_without_incoming_weights_keeps_its_scale():
    params, symmetry, _ = multilayer("relu", scaling=True)
    params["layer0"]["weight"] = params["layer0"]["weight"].at[:, 2].set(0.0)
    form = unit_scales(symmetry, params).params
    np.testing.assert_array_equal(form["layer0"]["bias"][2], params["layer0"]["bias"][2])
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(canonical(symmetry, params)))


def test_the_largest_incoming_weight_is_positive():
    params, symmetry, _ = multilayer("tanh", sign=True)
    form = canonical(symmetry, params).params
    for i in range(2):
        weights = np.asarray(form[f"layer{i}"]["weight"])
        assert np.all(np.max(weights, axis=0) >= 0.999 * np.max(-weights, axis=0))


def test_equal_magnitudes_are_told_apart():
    """Weights ±1, equal in magnitude but for the rounding of scales: signs and order come from the pattern."""
    params = {
        "layer0": {
            "weight": jnp.array([[1.0, 1.0, 1.0], [1.0, 1.0, -1.0], [1.0, -1.0, 1.0], [1.0, -1.0, -1.0]]).T,
            "bias": jnp.array([1.0, -1.0, 1.0, 1.0]),
        },
        "layer1": {
            "weight": jnp.array([[1.0, 1.0, -1.0, -1.0], [1.0, -1.0, 1.0, -1.0], [1.0, 1.0, 1.0, -1.0]]).T,
            "bias": jnp.array([1.0, 1.0, -1.0]),
        },
        "layer2": {"weight": jnp.ones((3, 2)), "bias": jnp.ones(2)},
    }
    symmetry = mlp_symmetry(params, scaling=True, sign=True)
    assert_one_form(symmetry, params)


def test_units_with_equal_incoming_weights_are_ordered_by_the_others():
    params, symmetry, _ = multilayer("relu", scaling=True)
    for name in ("weight", "bias"):
        params["layer0"][name] = jnp.broadcast_to(params["layer0"][name][..., :1], params["layer0"][name].shape)
    assert_one_form(symmetry, params)


@pytest.mark.parametrize("with_shifts", [False, True])
def test_very_small_and_large_weights_in_single_precision(with_shifts):
    params, symmetry, _ = multilayer("relu", scaling=True)
    params = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), params)
    sizes = jnp.asarray([1e-30, 1e30, 1e-25, 1.0, 1e25, 1e-10], jnp.float32)
    params["layer0"] = jax.tree.map(lambda leaf: leaf * sizes.reshape(*[1] * (leaf.ndim - 1), 6), params["layer0"])
    form = unit_scales(symmetry, params, with_shifts=with_shifts).params["layer0"]
    squares = jnp.sum(form["weight"] ** 2, axis=0) + with_shifts * form["bias"] ** 2
    # exp(−log ‖w‖) has the relative error ε |log ‖w‖| ≈ 6e-8 · 70, and products as many roundings again.
    np.testing.assert_allclose(jnp.sqrt(squares), 1.0, rtol=2e-5)
