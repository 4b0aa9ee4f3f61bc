"""Paths start and end where they should, take equivalent networks for one, and bend round what is in the way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.symmetry.by_hand import mlp_symmetry

from weightscape.core import InputError, tree
from weightscape.geometry.barrier import barrier
from weightscape.geometry.bend import train_bend
from weightscape.geometry.paths import Linear, OneBend, geodesic, rebased
from weightscape.geometry.sphere_product import SphereProduct
from weightscape.networks import MLP

KEY = jax.random.key(0)


def network(seed: int, activation: str = "relu"):
    made, generator = MLP(hidden=(4,), activation=activation, outputs=4), np.random.default_rng(seed)
    like = jax.eval_shape(made.init, KEY, jnp.ones((1, 4)))
    return made, jax.tree.map(lambda leaf: jnp.asarray(generator.normal(size=leaf.shape)), like)


def assert_near(left, right, atol=1e-12):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=atol), left, right)


def test_linear_and_bent_paths_pass_their_points_exactly():
    start, bend, end = jnp.array([0.1, 0.7]), jnp.array([0.3, -1.3]), jnp.array([1.7, 0.9])
    assert_near(Linear(start, end).at(jnp.asarray(1.0)), end, atol=0)
    np.testing.assert_allclose(Linear(start, end).at(jnp.asarray(0.25)), 0.75 * start + 0.25 * end, rtol=1e-6)
    path = OneBend(start, bend, end)
    along = jax.vmap(path.at)(jnp.array([0.0, 0.25, 0.5, 0.75, 1.0]))
    np.testing.assert_array_equal(along[::2], jnp.stack([start, bend, end]))
    np.testing.assert_allclose(along[1::2], jnp.stack([start + bend, bend + end]) / 2, rtol=1e-6)


def test_a_bend_goes_round_a_hill():
    """A ridge around the origin: the straight line crosses it, a bent one does not need to."""
    hill = lambda w: jnp.exp(-2 * jnp.sum(w**2)) + 0.01 * w[1] ** 2
    start, end = jnp.array([-2.0, 0.1]), jnp.array([2.0, 0.1])
    straight = barrier(Linear(start, end), hill, num_points=41)
    path = train_bend(KEY, hill, start, end, num_steps=500, learning_rate=0.05)
    np.testing.assert_allclose(straight.value, jnp.exp(-0.02), rtol=1e-3)
    assert float(barrier(path, hill, num_points=41).value) < 0.15
    np.testing.assert_array_equal(path.start, start)
    np.testing.assert_array_equal(path.end, end)


def test_the_bend_of_a_quadratic_loss_is_known(x64):
    """E_t ½‖w_t − c‖² has the gradient (a + b)/12 + m/3 − c/2 in the bend m, zero at m = (3/2) c − (a + b)/4."""
    start, end, centre = jnp.array([-1.0, 0.3]), jnp.array([1.0, 0.5]), jnp.array([0.2, 2.0])
    loss = lambda w: 0.5 * jnp.sum((w - centre) ** 2)
    path = train_bend(KEY, loss, start, end, num_steps=20_000, learning_rate=0.02)
    # The noise of single times averages out as the step size falls: over the last steps its square root is below 0.02.
    np.testing.assert_allclose(path.bend, 1.5 * centre - (start + end) / 4, atol=0.05)


@pytest.mark.parametrize("kind", [rebased, geodesic])
def test_equivalent_networks_are_one_point(kind, x64):
    """Under permutations for both, and for the geodesic under rescalings too."""
    made, params = network(0)
    whole = mlp_symmetry(params, scaling=True)
    symmetry = whole if kind is geodesic else whole.without_scaling()
    path = kind(KEY, symmetry, params, symmetry.apply(params, symmetry.random(KEY)))
    x = jnp.asarray(np.random.default_rng(1).normal(size=(7, 4)))
    outputs = jax.vmap(lambda t: made.apply(path.at(t), x))(jnp.linspace(0.0, 1.0, 5))
    assert_near(outputs, jnp.stack([made.apply(params, x)] * 5), atol=1e-10)


def test_a_geodesic_joins_equivalents_of_its_ends(x64):
    made, first = network(0)
    _, second = network(1)
    symmetry = mlp_symmetry(first, scaling=True)
    path = geodesic(KEY, symmetry, first, second)
    x = jnp.asarray(np.random.default_rng(1).normal(size=(7, 4)))
    for t, params in ((0.0, first), (1.0, second)):
        assert_near(made.apply(path.at(jnp.asarray(t)), x), made.apply(params, x), atol=1e-10)
    manifold = SphereProduct(symmetry)
    halfway = path.at(jnp.asarray(0.5))
    manifold.require_point(halfway, "the middle")
    ends = path.at(jnp.asarray(0.0)), path.at(jnp.asarray(1.0))
    halves = [manifold.distance(end, halfway) for end in ends]
    np.testing.assert_allclose(halves, tree.norm(path.velocity) / 2, rtol=1e-12)


def test_without_rescalings_a_geodesic_is_straight(x64):
    _, first = network(0, "tanh")
    _, second = network(1, "tanh")
    symmetry = mlp_symmetry(first, sign=True)
    curve, line = geodesic(KEY, symmetry, first, second), rebased(KEY, symmetry, first, second)
    for t in (0.3, 1.0):
        assert_near(curve.at(jnp.asarray(t)), line.at(jnp.asarray(t)))


def test_a_unit_without_direction_is_refused(unchecked):
    _, params = network(0)
    symmetry = mlp_symmetry(params, scaling=True)
    dead = params | {"layer0": params["layer0"] | {"weight": params["layer0"]["weight"].at[:, 1].set(0.0)}}
    with pytest.raises(InputError, match="`end` of geodesic .* remove units"):
        geodesic(KEY, symmetry, params, dead)
