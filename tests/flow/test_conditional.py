"""Hamiltonian steps among the targets of a point: reversal, volume and order; exact motion where the likelihood is a
normal.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats
from tests.flow import gaussians
from tests.flow.test_pull import PATHS
from tests.flow.test_swing import moments, normal_stiffness, normal_target

import weightscape as ws
from weightscape.flow import WhitenedSource
from weightscape.flow.conditional import Conditional, Stiffness
from weightscape.flow.target import Target

pytestmark = pytest.mark.usefixtures("x64")
INPUTS = np.array([[3.0, 1.2, -0.9], [-2.4, 3.6, 1.5], [1.8, -4.5, 2.7], [0.6, 0.9, -3.3]])
LABELS = np.array([1, 1, 0, 1])
MIDDLE, SCALE = np.array([0.3, -0.5, 0.4]), 0.8
VALUES = np.array([6.0, 0.7, 2.5])
X = np.array([0.5, -0.7, 1.1])
AXES = pytest.mark.parametrize("turned", [False, True], ids=["along the weights", "along other axes"])


def rotation():
    """Some orthonormal axes."""
    return np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]


def skewed(turned):
    """Logistic regression on three weights, far from a normal, with a stiffness that is not its curvature."""
    stiffness = Stiffness(jnp.asarray(VALUES), jnp.asarray(rotation()) if turned else None)
    model = ws.Model(ws.networks.MLP(hidden=(), bias=False), ws.likelihoods.Bernoulli(), ws.priors.Normal(1.0))
    posterior = model.condition(ws.Batch(INPUTS, LABELS))
    target = Target(posterior, WhitenedSource.of(posterior))
    return Conditional(target, stiffness, jnp.asarray(MIDDLE), jnp.asarray(SCALE))


def normal(path, time):
    """The targets of X, of a linear model with correlated weights; the stiffness is its curvature."""
    at = path.coefficients(jnp.asarray(time))
    variance = at.a**2 + at.b**2
    middle = at.b / variance * jnp.asarray(X)
    return Conditional(normal_target(), normal_stiffness(), middle, at.a / jnp.sqrt(variance))


def starts(count):
    """Values of u and y."""
    return jnp.asarray(np.random.default_rng(3).normal(size=(count, 2, 3)))


def joined(state):
    return jnp.stack([state.u, state.y])


@eqx.filter_jit
def stepped(targets, start, step_size):
    """(u, y) after a step."""
    return joined(targets.step(targets.state(*start), jnp.asarray(step_size)))


@eqx.filter_jit
def walked(targets, start, step_size, num_steps):
    """(u, y) and H at the start and after each step."""

    def step(state, _):
        state = targets.step(state, jnp.asarray(step_size))
        return state, (joined(state), targets.energy(state))

    first = targets.state(*start)
    _, (places, energies) = jax.lax.scan(step, first, None, length=num_steps)
    return jnp.concatenate([start[None], places]), jnp.concatenate([targets.energy(first)[None], energies])


@AXES
def test_the_energy_is_minus_the_log_density_of_targets_and_momenta(turned):
    """−H = log N(x₁; μ, s²) L(x₁) N(y; 0, 1/m), but for a constant."""
    targets, axes = skewed(turned), rotation() if turned else np.eye(3)
    ours, known = [], []
    for u, y in np.asarray(starts(6)):
        ours.append(-float(targets.energy(targets.state(jnp.asarray(u), jnp.asarray(y)))))
        x = MIDDLE + SCALE * axes @ u
        likelihood = np.sum(special.log_expit(np.where(LABELS, 1, -1) * (INPUTS @ x)))
        momenta = np.sum(stats.norm.logpdf(y, 0, (1 + SCALE**2 * VALUES) ** -0.5))
        known.append(np.sum(stats.norm.logpdf(x, MIDDLE, SCALE)) + likelihood + momenta)
    assert np.ptp(known) > 5
    # Sums of a dozen terms of some ten.
    np.testing.assert_allclose(np.subtract(ours, ours[0]), np.subtract(known, known[0]), rtol=0, atol=1e-12)


@AXES
@pytest.mark.parametrize("step_size", [0.1, 1.0, 2.5])
def test_a_step_back_undoes_a_step(turned, step_size):
    targets = skewed(turned)
    for start in starts(4):
        there = stepped(targets, start, step_size)
        assert np.max(np.abs(there - start)) > 0.03
        # Roundings of 1e-16 in numbers of some ten, stretched by the step's derivatives, which are below ten.
        np.testing.assert_allclose(stepped(targets, there, -step_size), start, rtol=0, atol=1e-13)


@AXES
@pytest.mark.parametrize("step_size", [0.1, 1.0, 2.5])
def test_a_step_keeps_volumes(turned, step_size):
    slopes = eqx.filter_jit(jax.jacfwd(functools.partial(stepped, skewed(turned), step_size=step_size)))
    for start in starts(4):
        matrix = np.asarray(slopes(start)).reshape(6, 6)
        assert np.max(np.abs(matrix - np.eye(6))) > 0.05
        # A determinant's error is that of its terms: roundings of 1e-16 in products of lengths of rows.
        bound = 1e-14 * np.prod(np.maximum(np.linalg.norm(matrix, axis=1), 1.0))
        assert abs(np.linalg.det(matrix) - 1) < bound < 1e-11


@AXES
@pytest.mark.parametrize("power", [1.0, 0.4])
def test_the_energy_is_kept_to_second_order(turned, power):
    """Over a fixed length, half the step size has a quarter of the error; less than 5% off when steps are short. At a
    power below 1 a slope pulls as well, and H knows of both.
    """
    targets, length = skewed(turned)._replace(power=power, slope=jnp.array([2.0, -1.5, 0.8])), 2.0
    for start in starts(3):
        energies = [walked(targets, start, length / count, count)[1] for count in (40, 80, 160)]
        errors = np.array([float(along[-1] - along[0]) for along in energies])
        assert np.all(np.abs(errors) > 1e-7)
        np.testing.assert_allclose(errors[:-1] / errors[1:], 4.0, rtol=0.05)


@PATHS
@pytest.mark.parametrize("step_size", [0.2, 1.7, 3.0, -0.9])
def test_the_motion_around_a_normal_is_exact_for_every_step_size(path, step_size):
    """(u, y) turns around (c, 0), where μ + s c is the mean of the targets."""
    angles = step_size * np.arange(21)[:, None]
    for time in (0.0, 0.3, 0.9):
        targets = normal(path, time)
        mean = gaussians.target(path, *moments())(jnp.asarray(time), jnp.asarray(X))
        centre = np.asarray(targets.stiffness.along(mean - targets.middle) / targets.scale)
        for start in starts(2):
            u, y = np.asarray(start) - [centre, np.zeros(3)]
            known = [centre + np.cos(angles) * u + np.sin(angles) * y, np.cos(angles) * y - np.sin(angles) * u]
            places, energies = walked(targets, start, step_size, 20)
            # Twenty steps with roundings of 1e-16 in kicks of tan ½h f, where tan ½h < 15 and f is of order one, and
            # gradients of some hundred.
            np.testing.assert_allclose(places, np.stack(known, axis=1), rtol=0, atol=1e-10)
            np.testing.assert_allclose(energies, np.full(21, energies[0]), rtol=1e-11)


@AXES
def test_both_ends_are_harmless(turned):
    """A scale of 0 leaves x₁ alone, and (u, y) turns around nothing; at time 0 the targets are all of the posterior."""
    last, first = skewed(turned)._replace(scale=jnp.zeros(())), skewed(turned)._replace(scale=jnp.ones(()))
    first = first._replace(middle=jnp.zeros(3))
    flat = first._replace(stiffness=first.stiffness._replace(values=jnp.zeros(3)))
    for start in starts(2):
        u, y = np.asarray(start)
        known = [np.cos(0.7) * u + np.sin(0.7) * y, np.cos(0.7) * y - np.sin(0.7) * u]
        np.testing.assert_allclose(stepped(last, start, 0.7), known, rtol=0, atol=1e-15)
        np.testing.assert_array_equal(last.place(start[0]), MIDDLE)
        for targets in (last, first, flat, flat._replace(scale=jnp.zeros(()))):
            places, energies = walked(targets, start, 0.1, 10)
            assert np.all(np.isfinite(places)) and np.ptp(places) > 0.1
            assert np.all(np.isfinite(energies))
            assert np.all(np.isfinite(jax.jacfwd(lambda s, t=targets: stepped(t, s, 0.1))(start)))
