"""Spheres and their products: the laws of exp, log, distance and transport, from tiny angles to the antipode."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.geometry.networks_by_hand import attention
from tests.symmetry.by_hand import mlp_symmetry

from weightscape.core import InputError, tree
from weightscape.geometry.canonical import unit_scales
from weightscape.geometry.sphere_product import SphereProduct
from weightscape.geometry.spheres import Sphere
from weightscape.geometry.vector_manifold import VectorManifold

KEY = jax.random.key(0)
# Sums of ten products and a few functions, each with an error of some 1e-16.
ROUNDING = 1e-13


def rows(seed: int, num_rows: int = 6, size: int = 5) -> jax.Array:
    drawn = np.random.default_rng(seed).normal(size=(num_rows, size))
    return jnp.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def on_product(seed: int, *, with_shifts: bool = False):
    params = mlp_like(seed)
    return unit_scales(mlp_symmetry(params, scaling=True), params, with_shifts=with_shifts).params


def product(*, with_shifts: bool = False) -> SphereProduct:
    return SphereProduct(mlp_symmetry(mlp_like(0), scaling=True), with_shifts=with_shifts)


def mlp_like(seed: int):
    generator = np.random.default_rng(seed)
    sizes = (4, 4, 4, 4)  # alike, so that fewer programs are compiled
    return {
        f"layer{i}": {
            "weight": jnp.asarray(generator.normal(size=sizes[i : i + 2])),
            "bias": jnp.asarray(generator.normal(size=sizes[i + 1])),
        }
        for i in range(3)
    }


SPACES = {
    "sphere": lambda: (Sphere(), rows),
    "product": lambda: (product(), on_product),
    "product with shifts": lambda: (product(with_shifts=True), lambda seed: on_product(seed, with_shifts=True)),
}


@pytest.fixture(params=SPACES)
def space(request, x64):
    """A manifold, and a function from seeds to points of it."""
    return SPACES[request.param]()


def assert_near(left, right, atol=ROUNDING):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=atol), left, right)


def test_exp_undoes_log(space):
    manifold, point = space
    x, y = point(1), point(2)
    assert_near(manifold.exp(x, manifold.log(x, y)), y)
    v = tree.scale(0.3, manifold.random_tangent(KEY, x))
    assert_near(manifold.log(x, manifold.exp(x, v)), v)
    assert_near(manifold.log(x, x), tree.scale(0.0, x))


def test_log_is_as_long_as_the_distance_and_tangent(space):
    manifold, point = space
    x, y = point(1), point(2)
    v = manifold.log(x, y)
    np.testing.assert_allclose(tree.norm(v), manifold.distance(x, y), rtol=ROUNDING)
    assert_near(manifold.project(x, v), v)
    tangent = manifold.random_tangent(KEY, x)
    assert_near(manifold.project(x, tangent), tangent)


def test_distance_is_a_metric(space):
    manifold, point = space
    points = [point(i) for i in range(5)]
    d = np.array([[float(manifold.distance(x, y)) for y in points] for x in points])
    np.testing.assert_allclose(d, d.T, atol=ROUNDING)
    np.testing.assert_array_equal(np.diag(d), 0.0)
    assert np.all(d[:, None, :] <= d[:, :, None] + d[None, :, :] + ROUNDING)
    assert np.all(d + np.eye(5) > 0.1)


def test_geodesics_have_constant_speed(space):
    manifold, point = space
    x, y = point(1), point(2)
    times = jnp.linspace(0.0, 1.0, 6)
    along = jax.vmap(lambda t: manifold.geodesic(x, y, t))(times)
    pick = lambda i: jax.tree.map(lambda leaf: leaf[i], along)
    steps = [float(manifold.distance(pick(i), pick(i + 1))) for i in range(5)]
    np.testing.assert_allclose(steps, float(manifold.distance(x, y)) / 5, rtol=ROUNDING)


def test_transport_is_an_isometry_between_tangent_spaces(space):
    manifold, point = space
    x, y = point(1), point(2)
    u, v = (manifold.random_tangent(key, x) for key in jax.random.split(KEY))
    moved_u, moved_v = manifold.transport(x, y, u), manifold.transport(x, y, v)
    np.testing.assert_allclose(tree.dot(moved_u, moved_v), tree.dot(u, v), atol=50 * ROUNDING)
    np.testing.assert_allclose(tree.norm(moved_u), tree.norm(u), rtol=ROUNDING)
    assert_near(manifold.project(y, moved_u), moved_u)
    assert_near(manifold.transport(y, x, moved_u), u, atol=10 * ROUNDING)
    # The velocity of a geodesic is carried along by it.
    assert_near(manifold.transport(x, y, manifold.log(x, y)), tree.scale(-1.0, manifold.log(y, x)), atol=10 * ROUNDING)


def test_transport_solves_its_equation(x64):
    """Small projections, one after the other, converge to parallel transport with the step size."""
    sphere, x, y = Sphere(), rows(1), rows(2)
    v = sphere.random_tangent(KEY, x)
    times = jnp.linspace(0.0, 1.0, 10_001)[1:]
    moved, _ = jax.lax.scan(lambda v, t: (sphere.project(sphere.geodesic(x, y, t), v), None), v, times)
    # Each of n steps of angle θ/n errs by some (θ/n)²/2: θ²/(2n) in all, here below 5e-4.
    np.testing.assert_allclose(moved, sphere.transport(x, y, v), atol=2e-3)


@pytest.mark.parametrize("size", [0.0, 0.2, 0.26, 1.2])
def test_pulled_back_velocities_are_those_before_exp(space, size):
    """Rows of `v` have angles of about `size` times two: on both sides of where the series ends."""
    manifold, point = space
    x = point(1)
    key_v, key_u = jax.random.split(KEY)
    v, u = tree.scale(size, manifold.random_tangent(key_v, x)), manifold.random_tangent(key_u, x)
    w = jax.jvp(lambda u: manifold.exp(x, u), (v,), (u,))[1]
    # Rows turn by 3 at most, where 1 / sin θ stretches rounding tenfold and its square a hundredfold.
    assert_near(manifold.pull_back(x, v, w), u, atol=200 * ROUNDING)


def test_the_nearest_point_is_found_along_the_normal(space):
    manifold, point = space
    x = point(1)
    beside = tree.add(x, tree.scale(0.3, tree.subtract(x, manifold.project(x, x))))
    assert_near(manifold.nearest(beside), x)
    assert_near(manifold.nearest(x), x)


def test_vectors_stand_for_trees(x64):
    x, y, trees = on_product(1), on_product(2), product()
    layout = trees.symmetry.layout
    vectors, flat = VectorManifold(trees, layout), layout.flatten
    v, w = (trees.random_tangent(key, x) for key in jax.random.split(KEY))
    for name, given in {"exp": (x, v), "log": (x, y), "transport": (x, y, v), "project": (x, w), "nearest": (w,),
                        "pull_back": (x, v, w)}.items():  # fmt: skip
        ours = getattr(vectors, name)(*map(flat, given))
        np.testing.assert_allclose(ours, flat(getattr(trees, name)(*given)), rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(vectors.distance(flat(x), flat(y)), trees.distance(x, y), rtol=ROUNDING)


@pytest.mark.parametrize(("with_shifts", "area"), [(False, 2 * np.pi**2), (True, 8 * np.pi**2 / 3)], ids=["S³", "S⁴"])
def test_area_and_places_of_the_spheres(x64, with_shifts, area):
    """Eight spheres in four dimensions, or five with shifts; the readout is flat, and shifts unless they count."""
    manifold = product(with_shifts=with_shifts)
    assert manifold.num_spheres == 8
    np.testing.assert_allclose(manifold.log_area, 8 * np.log(area), rtol=1e-12)
    curved = manifold.symmetry.layout.unflatten(jnp.asarray(manifold.is_curved()))
    for i in range(3):
        np.testing.assert_array_equal(curved[f"layer{i}"]["weight"], float(i < 2))
        np.testing.assert_array_equal(curved[f"layer{i}"]["bias"], float(i < 2 and with_shifts))


@pytest.mark.parametrize("with_shifts", [False, True])
def test_distances_of_the_product_add_in_squares(x64, with_shifts):
    x, y = (on_product(seed, with_shifts=with_shifts) for seed in (1, 2))
    manifold = product(with_shifts=with_shifts)
    assert len(manifold.spheres) == 2
    total = 0.0
    for i in range(3):
        weights, shifts = ([np.asarray(each[f"layer{i}"][name]) for each in (x, y)] for name in ("weight", "bias"))
        inner = np.sum(weights[0] * weights[1], axis=0) + with_shifts * shifts[0] * shifts[1]
        total += np.sum(np.arccos(inner) ** 2) if i < 2 else np.sum((weights[0] - weights[1]) ** 2)
        total += 0.0 if i < 2 and with_shifts else np.sum((shifts[0] - shifts[1]) ** 2)
    np.testing.assert_allclose(manifold.distance(x, y) ** 2, total, rtol=1e-12)


@pytest.mark.parametrize("angle", [1e-12, 1e-7, 1e-4, 1e-2, 1.0, 3.0, np.pi - 1e-3])
def test_angles_in_single_precision(angle):
    """arccos of the product would give 0 below 3e-4. Points are rounded to 6e-8, so no angle is known better."""
    direction = np.array([0.0, 0.6, 0.8])
    x = jnp.array([1.0, 0.0, 0.0], jnp.float32)
    y = jnp.asarray(np.cos(angle) * np.array([1.0, 0, 0]) + np.sin(angle) * direction, jnp.float32)
    sphere = Sphere()
    np.testing.assert_allclose(sphere.distance(x, y), angle, rtol=1e-6)
    v = sphere.log(x, y)
    # Near the antipode the direction is known as well as sin θ is above the rounding of y.
    np.testing.assert_allclose(v, angle * direction, rtol=2e-6 + 3e-7 / np.sin(angle) * (angle > 2), atol=0)
    np.testing.assert_allclose(sphere.exp(x, v), y, atol=3e-7)
    gradient = jax.grad(lambda y: jnp.sum(sphere.log(x, y)))(y)
    assert bool(jnp.all(jnp.isfinite(gradient)))


def test_antipodes_are_a_half_turn_apart(x64):
    sphere, x = Sphere(), rows(3)
    v = sphere.log(x, -x)
    np.testing.assert_allclose(jnp.linalg.norm(v, axis=-1), np.pi, rtol=ROUNDING)
    assert_near(sphere.project(x, v), v)
    assert_near(sphere.exp(x, v), -x)
    u = sphere.random_tangent(KEY, x)
    np.testing.assert_allclose(
        jnp.linalg.norm(sphere.transport(x, -x, u), axis=-1), jnp.linalg.norm(u, axis=-1), rtol=ROUNDING
    )


def test_nothing_moves_without_velocity():
    sphere, x = Sphere(), rows(3).astype(jnp.float32)
    np.testing.assert_array_equal(sphere.exp(x, jnp.zeros_like(x)), x)
    gradient = jax.grad(lambda v: jnp.sum(sphere.exp(x, v)))(jnp.zeros_like(x))
    np.testing.assert_array_equal(gradient, jnp.ones_like(x))


def test_random_tangents_have_the_right_spread(x64):
    x = rows(1, 1, 4)
    drawn = jax.vmap(lambda key: Sphere().random_tangent(key, x))(jax.random.split(KEY, 40_000))[:, 0]
    # Entries of a covariance from n draws err by √(2/n) = 0.007 at most; six of these.
    np.testing.assert_allclose(np.cov(drawn.T), np.eye(4) - x.T @ x, atol=0.043)
    np.testing.assert_allclose(drawn.mean(axis=0), 0.0, atol=0.03)


def test_points_must_be_normalised(unchecked):
    with pytest.raises(InputError, match="incoming weights of norm 1"):
        product().require_point(mlp_like(0), "`start`")
    product().require_point(on_product(0), "`start`")
    with pytest.raises(InputError, match=r"incoming weights and shift of norm 1.*params, with_shifts=True"):
        product(with_shifts=True).require_point(on_product(0), "`start`")
    product(with_shifts=True).require_point(on_product(0, with_shifts=True), "`start`")


@pytest.mark.parametrize("with_shifts", [False, True])
def test_scales_that_no_matrix_tells_apart_are_flat(x64, with_shifts):
    """Scales of heads and of entries meet in one leaf: in the canonical form only the entries have norms of one."""
    params, symmetry, _ = attention()
    manifold = SphereProduct(symmetry, with_shifts=with_shifts)
    assert [symmetry.groups[pivot.group].name for pivot in manifold.spheres] == ["entries"]
    manifold.require_point(unit_scales(symmetry, params, with_shifts=with_shifts).params, "it")
