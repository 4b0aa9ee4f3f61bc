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
from weightscape.flow.objective import Objective, OfTarget, OfVelocity
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


SOLVERS = {
    "heun": (lambda: FixedSteps(900, diffrax.Heun()), 2e-5),
    "euler": (lambda: FixedSteps(6000, diffrax.Euler()), 4e-3),
    "tsit5": (lambda: FixedSteps(40, diffrax.Tsit5()), 2e-5),
    "adaptive": (lambda: Adaptive(1e-8, 1e-8), 2e-5),
}
"""Each with the error that its order allows: a constant of about 3, 12 for Euler, over num_steps to that order."""


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("prediction", [OfVelocity(), OfTarget()], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("path", PATHS, ids=lambda path: type(path).__name__)
def test_transport_is_the_map_between_the_gaussians(path, prediction, name):
    """A linear velocity gives a linear map m + A x: m, A Aᵀ = Σ and log |det A| are exact, without any sampling."""
    make, tolerance = SOLVERS[name]
    known = gaussians.velocity(path) if isinstance(prediction, OfVelocity) else gaussians.target(path)
    velocity, solver = Objective(path, prediction).velocity(known), make()
    run = lambda x: carry_with_density(jax.random.key(0), solver, velocity, Exact(), x)
    ends = eqx.filter_jit(jax.vmap(run))(jnp.concatenate([jnp.zeros((1, 3)), jnp.eye(3)]))
    offset, matrix = ends.x[0], (ends.x[1:] - ends.x[:1]).T
    # The velocity of a predicted target stands still for the last thousandth of the way: in a step of 1/40 that is an
    # error of 1e-3/40 times the rate of the velocity (below 8) or of its divergence (below 80).
    still = 1e-3 / 40 if isinstance(prediction, OfTarget) else 0.0
    np.testing.assert_allclose(offset, gaussians.MEAN, atol=tolerance + 8 * still)
    np.testing.assert_allclose(matrix @ matrix.T, gaussians.COVARIANCE, atol=tolerance + 8 * still)
    change = np.full((4, 1), -np.linalg.slogdet(gaussians.FACTOR)[1])
    np.testing.assert_allclose(ends.log_change, change, atol=5 * tolerance + 80 * still)


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


@pytest.mark.parametrize("num_steps", [1, 2, 5])
def test_steps_are_as_many_as_asked_for(num_steps):
    """Euler's method by hand on dx/dt = (1 + t) x, forwards and backwards."""
    solver, times = FixedSteps(num_steps, diffrax.Euler(), bend=0.0), np.arange(num_steps) / num_steps
    run = lambda **ends: carry(solver, lambda time, x: (1 + time) * x, jnp.asarray([1.0, -2.0]), **ends)
    np.testing.assert_allclose(run(), np.prod(1 + (1 + times) / num_steps) * np.array([1.0, -2.0]), rtol=1e-12)
    backwards = np.prod(1 - (2 - times) / num_steps) * np.array([1.0, -2.0])
    np.testing.assert_allclose(run(first=1.0, last=0.0), backwards, rtol=1e-12, atol=1e-15)


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
        known = gaussians.target(Trigonometric(), mean, covariance)
        same = Objective(Trigonometric(), OfTarget()).velocity(known)(jnp.asarray(time), jnp.asarray([2.0, 0.4, -1.0]))
        np.testing.assert_allclose(same, moved, atol=1e-14)
    straight = gaussians.velocity(Straight(), mean, covariance)(jnp.asarray(0.1), jnp.asarray([2.0, 0.4, -1.0]))
    assert abs(straight[0]) > 0.1


def rough(x):
    return jnp.sin(x) * jnp.roll(x, 1) + jnp.cumsum(x) ** 2


@pytest.mark.parametrize("chunk_size", [1, 3, 7, 100])
def test_exact_divergence_is_the_trace_of_the_jacobian(chunk_size):
    x = starts(1, 7)[0]
    divergence = Exact(chunk_size).of(rough, x, Exact().probes(jax.random.key(0), x))
    np.testing.assert_allclose(divergence, jnp.trace(jax.jacobian(rough)(x))[None], rtol=1e-12)


def test_probes_estimate_the_trace_with_their_stated_variance():
    x, number = starts(1, 7)[0], 40_000
    way = Hutchinson(number)
    estimates = np.asarray(way.of(rough, x, way.probes(jax.random.key(1), x)))
    jacobian = np.asarray(jax.jacobian(rough)(x))
    symmetric = (jacobian + jacobian.T) / 2
    variance = 2 * np.sum((symmetric - np.diag(np.diag(symmetric))) ** 2)
    # Five standard errors of a mean; a sample variance has relative error √(κ/n), κ below 8 for a quadratic form.
    assert abs(estimates.mean() - np.trace(jacobian)) < 5 * np.sqrt(variance / number)
    assert abs(estimates.var() / variance - 1) < 5 * np.sqrt(8 / number)


def test_each_draw_has_probes_of_its_own_and_they_give_its_log_density_in_the_mean():
    """Two probes for each of many keys, against the exact divergence along the same steps."""
    x, number, solver = starts(1)[0], 2000, FixedSteps(10)
    change = lambda key, way: carry_with_density(key, solver, gaussians.velocity(Straight()), way, x).log_change
    exact = change(jax.random.key(0), Exact())
    estimates = np.asarray(
        jax.jit(jax.vmap(lambda key: change(key, Hutchinson(2))))(jax.random.split(jax.random.key(2), number))
    )
    assert estimates.shape == (number, 2)
    error = estimates.std(0) / number**0.5
    assert np.all(error > 1e-4)
    assert np.all(np.abs(estimates.mean(0) - exact) < 5.5 * error)
    # Independent probes have a correlation of 1/√n.
    assert abs(np.corrcoef(estimates.T)[0, 1]) < 5.5 / number**0.5


def test_bad_settings_are_named():
    with pytest.raises(InputError, match="`chunk_size` of Exact must be at least 1"):
        Exact(0)
    with pytest.raises(InputError, match="`num_probes` of Hutchinson must be at least 1"):
        Hutchinson(0)
    with pytest.raises(InputError, match="`num_steps` of FixedSteps"):
        FixedSteps(0)
    with pytest.raises(InputError, match="`relative` of Adaptive"):
        Adaptive(relative=-1.0)
