"""Paths, divergences and transport against the flow between two Gaussians, which is known in closed form."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.flow import gaussians

from weightscape.core.checks import InputError
from weightscape.flow import Adaptive, Exact, FixedSteps, Hutchinson, Straight, Trigonometric, carry, carry_with_density
from weightscape.flow.paths import point, rate, velocity_of_target

PATHS = [Straight(), Trigonometric()]
pytestmark = pytest.mark.usefixtures("x64")


def starts(count, size=3):
    return jax.random.normal(jax.random.key(0), (count, size))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: type(path).__name__)
def test_rates_are_the_derivatives_of_points(path):
    source, target = jnp.asarray([1.0, -2.0]), jnp.asarray([0.3, 4.0])
    for time in (0.0, 0.3, 0.8, 1.0):
        exact = jax.jvp(lambda t: point(path, t, source, target), (jnp.asarray(time),), (jnp.asarray(1.0),))[1]
        np.testing.assert_allclose(rate(path, jnp.asarray(time), source, target), exact, atol=1e-14)
    np.testing.assert_allclose(point(path, jnp.asarray(0.0), source, target), source, atol=1e-15)
    np.testing.assert_allclose(point(path, jnp.asarray(1.0), source, target), target, atol=1e-15)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: type(path).__name__)
def test_a_predicted_target_gives_the_same_velocity(path):
    velocity, target = gaussians.velocity(path), gaussians.target(path)
    x = starts(1)[0]
    for time in map(jnp.asarray, (0.0, 0.2, 0.7, 0.95)):
        np.testing.assert_allclose(
            velocity_of_target(path, time, x, target(time, x)), velocity(time, x), rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize(
    "solver",
    [FixedSteps(400), FixedSteps(3000, diffrax.Euler()), FixedSteps(40, diffrax.Tsit5()), Adaptive(1e-8, 1e-8)],
    ids=["heun", "euler", "tsit5", "adaptive"],
)
@pytest.mark.parametrize("path", PATHS, ids=lambda path: type(path).__name__)
def test_transport_is_the_map_between_the_gaussians(path, solver):
    """A linear velocity gives a linear map: mean and covariance of its image are exact, without any sampling."""
    velocity = gaussians.velocity(path)
    run = eqx.filter_jit(lambda solver, x: carry(solver, velocity, x))
    offset = run(solver, jnp.zeros(3))
    matrix = jnp.stack([run(solver, row) - offset for row in jnp.eye(3)], axis=1)
    tolerance = 4e-3 if isinstance(solver, FixedSteps) and isinstance(solver.scheme, diffrax.Euler) else 2e-5
    np.testing.assert_allclose(offset, gaussians.MEAN, atol=tolerance)
    np.testing.assert_allclose(matrix @ matrix.T, gaussians.COVARIANCE, atol=tolerance)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: type(path).__name__)
def test_log_densities_forwards_and_backwards(path):
    velocity, solver = gaussians.velocity(path), Adaptive(1e-9, 1e-9)
    go = eqx.filter_jit(
        lambda x, first, last: jax.vmap(
            lambda x: carry_with_density(jax.random.key(0), solver, velocity, Exact(2), x, first=first, last=last)
        )(x)
    )
    x = starts(8)
    there = go(x, 0.0, 1.0)
    log_source = gaussians.log_normal(x, np.zeros(3), np.eye(3))
    np.testing.assert_allclose(log_source + there.log_change[:, 0], gaussians.log_normal(there.x), atol=1e-6)
    back = go(there.x, 1.0, 0.0)
    np.testing.assert_allclose(back.x, x, atol=1e-6)
    np.testing.assert_allclose(back.log_change, there.log_change, atol=1e-6)


@pytest.mark.parametrize(("scheme", "order"), [(diffrax.Euler(), 1), (diffrax.Heun(), 2), (diffrax.Bosh3(), 3)])
def test_errors_fall_with_the_order_of_the_scheme(scheme, order):
    velocity, x = gaussians.velocity(Straight()), starts(1)[0]
    run = eqx.filter_jit(lambda solver: carry(solver, velocity, x))
    truth = run(Adaptive(1e-12, 1e-12))
    errors = [float(jnp.linalg.norm(run(FixedSteps(n, scheme)) - truth)) for n in (40, 80)]
    assert abs(np.log2(errors[0] / errors[1]) - order) < 0.25


def test_another_number_of_steps_compiles_nothing():
    traces = []

    @eqx.filter_jit
    def run(solver):
        traces.append(None)
        return carry(solver, gaussians.velocity(Straight()), jnp.zeros(3))

    run(FixedSteps(10)), run(FixedSteps(20)), run(FixedSteps(33))
    assert len(traces) == 1


def test_uninformed_weights_stand_still_on_the_trigonometric_path():
    mean, covariance = np.array([0.0, 1.0, 0.0]), np.diag([1.0, 0.3, 1.0])
    velocity = gaussians.velocity(Trigonometric(), mean, covariance)
    for time in (0.1, 0.6):
        moved = velocity(jnp.asarray(time), jnp.asarray([2.0, 0.4, -1.0]))
        np.testing.assert_allclose(moved[jnp.asarray([0, 2])], 0.0, atol=1e-14)
        assert abs(moved[1]) > 0.1
    straight = gaussians.velocity(Straight(), mean, covariance)(jnp.asarray(0.1), jnp.asarray([2.0, 0.4, -1.0]))
    assert abs(straight[0]) > 0.1


def rough(x):
    return jnp.sin(x) * jnp.roll(x, 1) + jnp.cumsum(x) ** 2


@pytest.mark.parametrize("chunk_size", [1, 3, 7, 100])
def test_exact_divergence_is_the_trace_of_the_jacobian(chunk_size):
    x = starts(1, 7)[0]
    velocity, divergence = Exact(chunk_size).of(rough, x, Exact().probes(jax.random.key(0), x))
    np.testing.assert_allclose(velocity, rough(x), rtol=1e-14)
    np.testing.assert_allclose(divergence, jnp.trace(jax.jacobian(rough)(x))[None], rtol=1e-12)


def test_probes_estimate_the_trace_with_their_stated_variance():
    x, number = starts(1, 7)[0], 40_000
    way = Hutchinson(number)
    estimates = np.asarray(way.of(rough, x, way.probes(jax.random.key(1), x))[1])
    jacobian = np.asarray(jax.jacobian(rough)(x))
    symmetric = (jacobian + jacobian.T) / 2
    variance = 2 * np.sum((symmetric - np.diag(np.diag(symmetric))) ** 2)
    # Five standard errors of a mean; a sample variance has relative error √(κ/n), κ below 8 for a quadratic form.
    assert abs(estimates.mean() - np.trace(jacobian)) < 5 * np.sqrt(variance / number)
    assert abs(estimates.var() / variance - 1) < 5 * np.sqrt(8 / number)


def test_bad_settings_are_named():
    with pytest.raises(InputError, match="`chunk_size` of Exact must be at least 1"):
        Exact(0)
    with pytest.raises(InputError, match="`num_probes` of Hutchinson must be at least 1"):
        Hutchinson(0)
    with pytest.raises(InputError, match="`num_steps` of FixedSteps"):
        FixedSteps(0)
    with pytest.raises(InputError, match="`relative` of Adaptive"):
        Adaptive(relative=-1.0)
