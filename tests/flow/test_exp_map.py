"""Flows on spheres against von Mises–Fisher in closed form: order, moments, densities; and paths along geodesics."""

from collections.abc import Callable

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.flow import gaussians, von_mises
from tests.flow.von_mises import CONCENTRATIONS, MEANS

from weightscape.flow import (
    Exact,
    ExpMapSteps,
    FixedSteps,
    GeodesicPath,
    Hutchinson,
    SphereSource,
    Straight,
    TangentField,
    carry,
    carry_with_density,
)
from weightscape.flow.fields import Field
from weightscape.geometry import Sphere
from weightscape.symmetry import of_function

pytestmark = pytest.mark.usefixtures("x64")
SCALE = 0.5
# The five weights that are on no sphere go to a normal of this mean and covariance, from a standard normal.
FLAT_MEAN, FLAT_COVARIANCE = np.linspace(-1, 1, 5), 0.3 * np.eye(5) + 0.2


class Formula(Field):
    """A function as a field."""

    function: Callable = eqx.field(static=True)

    def __call__(self, time, z):
        return self.function(time, z)


def source_of(*, with_shifts=False):
    symmetry = of_function(von_mises.posterior())
    return SphereSource.of(symmetry, symmetry.layout, jnp.full((11,), SCALE), with_shifts=with_shifts)


@pytest.fixture(scope="module")
def source():
    with jax.enable_x64(True):
        return source_of()


def flat_places(source):
    return np.flatnonzero(np.asarray(source.curved) == 0)


def units_of(source, z):
    """The incoming weights of both units."""
    return source.layout.unflatten(z).network["layer0"]["weight"].T


def field(source):
    """The product of two flows to von Mises–Fisher and one to a normal, in closed form."""
    flat = flat_places(source)
    linear = gaussians.velocity(Straight(), FLAT_MEAN, FLAT_COVARIANCE)

    def of(time, z):
        rows = units_of(source, z)
        moved = jnp.stack([von_mises.velocity(time, rows[i], MEANS[i], CONCENTRATIONS[i]) for i in range(2)])
        tree = source.layout.unflatten(jnp.zeros_like(z))
        tree.network["layer0"]["weight"] = moved.T
        return source.layout.flatten(tree).at[flat].set(linear(time, z[flat]))

    return TangentField(Formula(of), source.manifold)


def log_target(source, z):
    rows, flat = np.swapaxes(jax.vmap(lambda z: units_of(source, z))(z), 0, 1), np.asarray(z)[:, flat_places(source)]
    units = sum(von_mises.log_density(np.asarray(rows[i]), MEANS[i], CONCENTRATIONS[i]) for i in range(2))
    return units + gaussians.log_normal(flat, FLAT_MEAN, FLAT_COVARIANCE)


def starts(source, count):
    return jax.vmap(source.sample)(jax.random.split(jax.random.key(0), count))


ORDERS = [
    pytest.param(diffrax.Euler(), 1, marks=pytest.mark.slow),
    pytest.param(diffrax.Heun(), 2, marks=pytest.mark.slow),
    (diffrax.Bosh3(), 3),
]


@pytest.mark.parametrize(("scheme", "order"), ORDERS)
def test_errors_fall_with_the_order_of_the_scheme(source, scheme, order):
    """All of ten ways together, so that no single sign change hides the order; points stay on the spheres."""
    z, velocity = starts(source, 10), field(source)
    run = eqx.filter_jit(lambda solver: jax.vmap(lambda z: carry(solver, velocity, z))(z))
    truth = run(ExpMapSteps(source.manifold, FixedSteps(160, diffrax.Tsit5())))
    ends = [run(ExpMapSteps(source.manifold, FixedSteps(n, scheme))) for n in (40, 80)]
    errors = [float(jnp.linalg.norm(end - truth)) for end in ends]
    assert abs(np.log2(errors[0] / errors[1]) - order) < 0.25
    for end in ends:
        np.testing.assert_allclose(jnp.sum(source.curved[None] * end**2, axis=1), 2.0, atol=1e-14)


def test_a_step_of_euler_is_exp_of_the_velocity():
    sphere, x = Sphere(), jnp.asarray([0.0, 0.6, 0.8])
    velocity = lambda time, x: (1 + time) * sphere.project(x, jnp.asarray([1.0, 2.0, 0.5]))
    solver = ExpMapSteps(sphere, FixedSteps(2, diffrax.Euler(), bend=0.0))
    half = sphere.exp(x, 0.5 * velocity(0.0, x))
    np.testing.assert_allclose(carry(solver, velocity, x), sphere.exp(half, 0.5 * velocity(0.5, half)), atol=1e-14)


@pytest.fixture(scope="module")
def pushed(source):
    """Points of a quadrature of both spheres, and where the flow takes them, with its density there."""
    with jax.enable_x64(True):
        (first, weights), (second, _) = (von_mises.quadrature(mean) for mean in MEANS)
        both = jnp.asarray(np.stack([first, second], axis=2))
        insert = lambda z, units: source.layout.flatten(with_units(source.layout.unflatten(z), units))
        z = jax.vmap(insert)(starts(source, len(both)), both)
        solver = ExpMapSteps(source.manifold, FixedSteps(60, diffrax.Bosh3()))
        go = lambda z: carry_with_density(jax.random.key(0), solver, field(source), Exact(), z)
        return z, weights, eqx.filter_jit(jax.vmap(go))(z)


def with_units(tree, units):
    tree.network["layer0"]["weight"] = units
    return tree


def test_moments_of_the_flow_are_those_of_von_mises_fisher(source, pushed):
    """By quadrature, without sampling: u is analytic in the source's up to −1.014, so 40 heights err by some 1e-6."""
    _, weights, there = pushed
    rows = np.asarray(jax.vmap(lambda z: units_of(source, z))(there.x))
    for i in range(2):
        mean, second = von_mises.moments(MEANS[i], CONCENTRATIONS[i])
        np.testing.assert_allclose(weights @ rows[:, i], mean, atol=2e-5)
        np.testing.assert_allclose(np.einsum("n,ni,nj->ij", weights, rows[:, i], rows[:, i]), second, atol=2e-5)


def test_the_density_is_that_of_the_product_with_its_volume(source, pushed):
    z, _, there = pushed
    ours = jax.vmap(source.log_density)(z) + there.log_change[:, 0]
    np.testing.assert_allclose(ours, log_target(source, there.x), atol=1e-4)
    assert np.std(log_target(source, there.x)) > 1
    # Uniform on both spheres, of area 4π, and standard normal elsewhere.
    normal = -0.5 * np.sum(np.asarray(z)[:, flat_places(source)] ** 2, axis=1) - 2.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(jax.vmap(source.log_density)(z), normal - 2 * np.log(4 * np.pi), rtol=1e-12)
    np.testing.assert_allclose(source.log_volume, 5 * np.log(SCALE), rtol=1e-12)


def test_with_shifts_the_source_is_uniform_on_the_spheres_of_weights_and_shift():
    """S³ × S³ × R³: the area of S³ is 2π², and E x xᵀ = 1/4 for x = (w, b)."""
    source = source_of(with_shifts=True)
    z = starts(source, 2000)
    first = jax.vmap(source.layout.unflatten)(z).network["layer0"]
    units = np.concatenate([np.swapaxes(first["weight"], 1, 2), np.asarray(first["bias"])[..., None]], axis=2)
    np.testing.assert_allclose(np.linalg.norm(units, axis=2), 1.0, rtol=1e-14)
    rows = units.reshape(-1, 4)
    # Products of two entries deviate by at most 0.25 from their means.
    np.testing.assert_allclose(rows.T @ rows / len(rows), np.eye(4) / 4, atol=5 * 0.25 / np.sqrt(len(rows)))
    normal = -0.5 * np.sum(np.asarray(z)[:, flat_places(source)] ** 2, axis=1) - 1.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(jax.vmap(source.log_density)(z), normal - 2 * np.log(2 * np.pi**2), rtol=1e-12)
    np.testing.assert_allclose(source.log_volume, 3 * np.log(SCALE), rtol=1e-12)
    back = jax.vmap(lambda z: source.vector(source.position(z)))(z)
    np.testing.assert_allclose(back, z, rtol=1e-12)


@pytest.mark.slow
def test_it_goes_back_where_it_came_from(source, pushed):
    z, _, there = pushed
    solver = ExpMapSteps(source.manifold, FixedSteps(60, diffrax.Bosh3()))
    go = lambda z: carry_with_density(jax.random.key(0), solver, field(source), Exact(3), z, first=1.0, last=0.0)
    back = eqx.filter_jit(jax.vmap(go))(there.x[:8])
    np.testing.assert_allclose(back.x, z[:8], atol=1e-4)
    np.testing.assert_allclose(back.log_change, there.log_change[:8], atol=1e-4)


def test_the_divergence_is_that_of_the_manifold():
    """On S²: div_g of the tangent part of f = A x + b is tr A − ⟨x, A x⟩ − 2 ⟨x, A x + b⟩. Probes agree on average."""
    matrix, offset = np.random.default_rng(0).normal(size=(3, 3)), np.array([0.3, -1.0, 2.0])
    tangent = TangentField(Formula(lambda time, x: jnp.asarray(matrix) @ x + jnp.asarray(offset)), Sphere())
    x = np.array([0.48, 0.6, 0.64])
    known = np.trace(matrix) - x @ matrix @ x - 2 * x @ (matrix @ x + offset)
    at = lambda x: tangent(0.0, x)
    np.testing.assert_allclose(Exact().of(at, jnp.asarray(x), jnp.zeros((0, 3)))[0], known, rtol=1e-12)
    signs = jnp.asarray(np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T)
    np.testing.assert_allclose(np.mean(Hutchinson().of(at, jnp.asarray(x), signs)), known, rtol=1e-12)


@pytest.mark.parametrize("with_shifts", [False, True])
def test_geodesic_paths_have_the_speed_of_the_distance_and_stay_tangent(with_shifts):
    source = source_of(with_shifts=with_shifts)
    x, y = starts(source, 2)
    path, manifold = GeodesicPath(source.manifold), source.manifold
    np.testing.assert_allclose(path.point(jnp.asarray(0.0), x, y), x, atol=1e-14)
    np.testing.assert_allclose(path.point(jnp.asarray(1.0), x, y), y, atol=1e-14)
    for time in map(jnp.asarray, (0.0, 0.3, 1.0)):
        here, moving = path.point(time, x, y), path.rate(time, x, y)
        np.testing.assert_allclose(manifold.project(here, moving), moving, atol=1e-13)
        np.testing.assert_allclose(jnp.linalg.norm(moving), manifold.distance(x, y), rtol=1e-12)
        np.testing.assert_allclose(moving, manifold.transport(x, here, manifold.log(x, y)), atol=1e-12)
