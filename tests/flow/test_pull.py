"""The pull of the data: velocities, regression targets and costs, against Gaussians and quadrature."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from tests.flow import gaussians

from weightscape.flow import OfPull, Straight, Trigonometric, UniformTimes
from weightscape.flow.fields import Field
from weightscape.flow.objective import Objective
from weightscape.flow.pull import factors, pull_of_pair, velocity_of_pull
from weightscape.flow.pull_field import Curvature, PullField
from weightscape.metanet.fixed import Fixed, split_trained

pytestmark = pytest.mark.usefixtures("x64")
PATHS = pytest.mark.parametrize("path", [Straight(), Trigonometric()], ids=lambda path: type(path).__name__)
TIMES = (0.0, 1e-9, 0.2, 0.5, 0.9, 1.0)
X = np.array([0.4, -1.3, 0.8])


def gradient(x, mean=gaussians.MEAN, covariance=gaussians.COVARIANCE):
    """∇ log L where N(0, 1) L is a normal: x − Σ⁻¹(x − m)."""
    return x - jnp.linalg.solve(jnp.asarray(covariance), x - jnp.asarray(mean))


def known_pull(path, time, x, mean=gaussians.MEAN, covariance=gaussians.COVARIANCE):
    """G: the gradient is linear, so its mean is the gradient at the mean."""
    return gradient(gaussians.target(path, mean, covariance)(time, x), mean, covariance)


@PATHS
def test_the_known_pull_gives_the_known_velocity(path):
    for time in map(jnp.asarray, TIMES):
        ours = velocity_of_pull(path, time, jnp.asarray(X), known_pull(path, time, jnp.asarray(X)))
        # Σ⁻¹ has entries of 50: a dozen roundings of 1e-16 times that.
        np.testing.assert_allclose(ours, gaussians.velocity(path)(time, jnp.asarray(X)), rtol=1e-11, atol=1e-11)


@PATHS
@pytest.mark.parametrize("curvature", [0.0, 0.7, 1e4])
def test_what_is_regressed_on_has_the_pull_as_its_mean(path, curvature):
    """y is linear in x₁ where log L is quadratic, so its conditional mean is y at E[x₁ | x_t]."""
    curvatures = curvature * jnp.asarray([1.0, 2.0, 0.5])
    for time in map(jnp.asarray, TIMES[1:]):
        target = gaussians.target(path)(time, jnp.asarray(X))
        ours = pull_of_pair(path, time, jnp.asarray(X), target, gradient(target), curvatures)
        # Where a is small, κ (σ² x₁ − b x_t) cancels down to a² G: what is left has κ times the rounding of x₁.
        np.testing.assert_allclose(ours, known_pull(path, time, jnp.asarray(X)), rtol=1e-9, atol=1e-9)


def skewed_log_likelihood(x):
    """Three labels of a logistic regression: no normal."""
    return jax.nn.log_sigmoid(3 * x) + jax.nn.log_sigmoid(1.5 * x) + jax.nn.log_sigmoid(-0.5 * x)


@PATHS
@pytest.mark.parametrize("log_likelihood", [skewed_log_likelihood, lambda x: 0.0 * x], ids=["skewed", "uninformed"])
def test_means_by_quadrature(path, log_likelihood):
    """E[u_t | x_t] is the velocity of E[y | x_t] for every κ; a weight that the data say nothing about has no pull."""
    grid = jnp.linspace(-12.0, 12.0, 20_001)
    slopes = jax.vmap(jax.grad(log_likelihood))(grid)
    for time, x in ((0.15, 0.9), (0.5, -0.4), (0.8, 1.1)):
        at = path.coefficients(jnp.asarray(time))
        log_mass = -(grid**2) / 2 + jax.vmap(log_likelihood)(grid) - ((x - at.b * grid) / at.a) ** 2 / 2
        mass = jax.nn.softmax(log_mass)
        velocity = jnp.vdot(mass, at.a_rate * (x - at.b * grid) / at.a + at.b_rate * grid)
        here = jnp.asarray([x])
        of_pair = functools.partial(pull_of_pair, path, jnp.asarray(time), here)
        for curvature in (0.0, 1.3, 50.0):
            curvatures = jnp.full((len(grid), 1), curvature)
            pulls = jax.vmap(of_pair)(grid[:, None], slopes[:, None], curvatures)[:, 0]
            mean = jnp.vdot(mass, pulls)
            # The trapezoid rule is exact to rounding for smooth functions that vanish at both ends.
            ours = velocity_of_pull(path, jnp.asarray(time), here, mean[None])
            np.testing.assert_allclose(ours[0], velocity, rtol=1e-10, atol=1e-10)
            if log_likelihood is not skewed_log_likelihood:
                np.testing.assert_allclose(mean, 0.0, atol=1e-10)


@PATHS
def test_there_is_no_noise_where_the_curvature_is_right(path):
    """Of independent weights with variance s² the likelihood is a normal of precision κ = 1/s² − 1: y is G, always."""
    mean, variance = np.array([0.5, -1.0, 0.0]), np.array([0.1, 0.6, 1.0])
    known = known_pull(path, jnp.asarray(0.3), jnp.asarray(X), mean, np.diag(variance))
    for shift in (-2.0, 0.0, 5.0):
        target = jnp.asarray(X) + shift
        slope = gradient(target, mean, np.diag(variance))
        ours = pull_of_pair(path, jnp.asarray(0.3), jnp.asarray(X), target, slope, jnp.asarray(1 / variance - 1))
        np.testing.assert_allclose(ours, known, rtol=1e-12, atol=1e-12)
    assert known[2] == 0


@PATHS
def test_the_cost_is_that_of_the_best_noise(path):
    """KL ≤ ∫ ‖δdrift‖² / (2 D²) dt (Girsanov), with drift v + D² s / 2 and the score s = (b G − x) / σ²: an error of G
    costs (across + D² b / 2σ²)² / 2D², which `cost` must be the least of over all D².
    """
    for time in map(jnp.asarray, TIMES[1:-1]):
        at, (_, across, cost) = path.coefficients(time), factors(path, time)
        x, variance = jnp.asarray(X), at.a**2 + at.b**2
        spread = at.a**2 * np.eye(3) + at.b**2 * gaussians.COVARIANCE
        score = -np.linalg.solve(spread, X - at.b * gaussians.MEAN)
        np.testing.assert_allclose((at.b * known_pull(path, time, x) - x) / variance, score, rtol=1e-9, atol=1e-9)
        slope = at.b / (2 * variance)
        costs = [(across + noise * slope) ** 2 / (2 * noise) for noise in across / slope * np.array([0.5, 1.0, 2.0])]
        np.testing.assert_allclose(cost, costs[1], rtol=1e-12)
        assert costs[0] > cost < costs[2]
    assert factors(path, jnp.asarray(0.0)).cost == 0
    assert abs(factors(path, jnp.asarray(1.0)).cost) < 1e-15  # a is cos(π/2), which rounds to 6e-17


class LinearPull(eqx.Module):
    """A pull that is wrong, with two kinds of numbers."""

    matrix: Array
    shift: Array
    curvature: Curvature

    def __call__(self, time, x):
        return self.matrix @ x + time * self.shift


class KnownPull(OfPull):
    """Regression on G itself."""

    def error(self, path, time, model, x, pair):
        return factors(path, time).cost * jnp.mean((model(time, x) - known_pull(path, time, x)) ** 2)


@PATHS
def test_pairs_have_the_gradient_of_the_pull(path):
    """∇E w‖f − y‖² = ∇E w‖f − G‖² for the numbers of a model that is far from G, within the Monte-Carlo error."""
    count = 20_000
    key_source, key_target = jax.random.split(jax.random.key(0))
    sources = jax.random.normal(key_source, (count, 3))
    normal = jax.random.normal(key_target, (count, 3))
    targets = jnp.asarray(gaussians.MEAN)[None] + normal @ jnp.asarray(gaussians.FACTOR).T
    slopes = jax.vmap(gradient)(targets)
    curvature = Curvature.of(jnp.asarray([0.3, 4.0]), jnp.asarray([0, 1, 1]))
    model = LinearPull(0.3 * jnp.eye(3) + 0.1, jnp.asarray([1.0, 0.0, -1.0]), curvature)

    @eqx.filter_jit
    def differences(model):
        def of(model, prediction, key, source, target, slope):
            loss = Objective(path, prediction, UniformTimes()).loss
            return loss(key, model, source[None], target[None], slope[None])

        keys = jax.random.split(jax.random.key(1), count)
        slope = lambda prediction: jax.vmap(
            lambda *pair: eqx.filter_grad(of)(model, prediction, *pair), in_axes=(0, 0, 0, 0)
        )(keys, sources, targets, slopes)
        ours, known = slope(OfPull()), slope(KnownPull())
        return ours.matrix - known.matrix, ours.shift - known.shift

    for leaf in differences(model):
        error = np.std(leaf, axis=0) / count**0.5
        assert np.all(np.abs(np.mean(leaf, axis=0)) < 5.5 * error)
        assert np.all(error > 0)


def test_the_right_curvature_has_the_least_loss():
    """At the true pull of independent weights the loss is zero for κ = 1/s² − 1, and above it for every other κ."""
    path, mean, variance = Trigonometric(), np.array([0.5, -1.0]), np.array([0.1, 0.6])

    class True_(eqx.Module):
        curvature: Curvature

        def __call__(self, time, x):
            return known_pull(path, time, x, mean, np.diag(variance))

    sources = jax.random.normal(jax.random.key(0), (64, 2))
    targets = mean[None] + jax.random.normal(jax.random.key(1), (64, 2)) * variance[None] ** 0.5
    slopes = jax.vmap(lambda x: gradient(x, mean, np.diag(variance)))(targets)
    knots = jnp.log(jnp.asarray(np.tile(1 / variance - 1, (9, 1))))

    def loss(shift):
        curvature = Curvature(knots + shift, jnp.arange(2))
        return Objective(path, OfPull()).loss(jax.random.key(2), True_(curvature), sources, targets, slopes)

    assert float(loss(0.0)) < 1e-25
    assert float(loss(-0.5)) > 1e-3 and float(loss(0.5)) > 1e-3


def test_curvatures_are_geometric_means_between_knots():
    knots = jnp.asarray(np.random.default_rng(0).normal(size=(9, 2)))
    curvature = Curvature(knots, jnp.asarray([1, 0, 1]))
    for knot in range(9):
        np.testing.assert_allclose(curvature(jnp.asarray(knot / 8)), np.exp(knots[knot])[[1, 0, 1]], rtol=1e-13)
    between = curvature(jnp.asarray(2.25 / 8))
    np.testing.assert_allclose(between, np.exp(0.75 * knots[2] + 0.25 * knots[3])[[1, 0, 1]], rtol=1e-13)
    constant = Curvature.of(jnp.asarray([0.0, 3.0]), jnp.asarray([0, 1]))
    for time in (0.0, 0.33, 1.0):
        np.testing.assert_allclose(constant(jnp.asarray(time)), [1e-3, 3.001], rtol=1e-12)


def test_a_pull_field_is_scaled_and_its_scale_is_not_trained():
    class Shift(Field):
        numbers: Array

        def __call__(self, time, z):
            return self.numbers + z

    scale = jnp.asarray([2.0, 0.5])
    curvature = Curvature.of(jnp.ones(1), jnp.asarray([0, 0]))
    field = PullField(Shift(jnp.asarray([1.0, 3.0])), Fixed(scale), curvature)
    np.testing.assert_allclose(field(jnp.asarray(0.1), jnp.asarray([1.0, -1.0])), [4.0, 1.0])
    trained = jax.tree.leaves(split_trained(field)[0])
    assert sorted(leaf.shape for leaf in trained) == [(2,), (9, 1)]
