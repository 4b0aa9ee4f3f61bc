"""Pulls averaged over a swing: against exact draws and quadrature of a skewed posterior, and normals in closed form."""

import dataclasses
import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.flow import gaussians, tiny
from tests.flow.linear_flows import SCALE, known_draws, problem
from tests.flow.test_flow_matching import numbers
from tests.flow.test_pull import PATHS, LinearPull, gradient, known_pull
from tests.inference.test_resume import Ending, Killed

import weightscape as ws
from weightscape.core import InputError, loop
from weightscape.draws import recorder
from weightscape.flow import OfPull, Plain, Straight, Trigonometric, WhitenedSource
from weightscape.flow.conditional import Stiffness
from weightscape.flow.objective import Objective, Pair
from weightscape.flow.paths import point
from weightscape.flow.pull import factors
from weightscape.flow.pull_field import Curvature
from weightscape.flow.swing import Swing, stiffness_of
from weightscape.flow.target import Target

pytestmark = pytest.mark.usefixtures("x64")
# Of 500 comparisons of means a correct program fails one once in a million times.
ERRORS = 6.0
NUM_PAIRS = 20_000
TIMES = (0.1, 0.5, 0.9)
INPUTS = np.array([[1.0, 0.4], [-0.8, 1.2], [0.6, -1.5]])
COUNTS = np.array([4.0, 0.0, 2.0])
X = np.array([0.5, -0.7])


class Pairs(NamedTuple):
    """Pairs with one x_t, whose targets are exact draws of p(x₁ | x_t), and the averages that come of them."""

    draws: Pair
    averages: Pair


def of_counts(likelihood, inputs=INPUTS, counts=COUNTS):
    """Poisson regression: log L = Σ y η − exp η with η = inputs · z, far from a normal."""
    model = ws.Model(ws.networks.MLP(hidden=(), bias=False), likelihood, ws.priors.Normal(1.0))
    posterior = model.condition(ws.Batch(inputs, counts))
    return Target(posterior, WhitenedSource.of(posterior))


def slopes(z):
    return (COUNTS[None] - np.exp(z @ INPUTS.T)) @ INPUTS


def log_likelihood(z):
    """Relative to its bound: y η − exp η is y log y − y at most."""
    predictors, most = z @ INPUTS.T, COUNTS * np.log(np.maximum(COUNTS, 1)) - COUNTS
    return np.sum(COUNTS * predictors - np.exp(predictors) - most, axis=-1)


@functools.cache
def exact_pairs(path, time, inside=lambda z: np.full(len(z), True)):
    """Draws of N(μ, s²) that are accepted with probability L / max L, and the sources that lead to the same x_t."""
    generator, at = np.random.default_rng(0), path.coefficients(jnp.asarray(time))
    a, b = float(at.a), float(at.b)
    tried = b / (a**2 + b**2) * X + a / np.hypot(a, b) * generator.normal(size=(40 * NUM_PAIRS, 2))
    accepted = np.log(generator.uniform(size=len(tried))) < log_likelihood(tried)
    targets = tried[accepted & inside(tried)][:NUM_PAIRS]
    assert len(targets) == NUM_PAIRS
    return Pair(*(jnp.asarray(part) for part in ((X - b * targets) / a, targets, slopes(targets))))


@eqx.filter_jit
def averaged(swing, path, time, pairs):
    keys = jax.random.split(jax.random.key(3), len(pairs.target))
    return jax.vmap(lambda key, pair: swing(key, path, time, pair))(keys, pairs)


@functools.cache
def swung(path, time, num_leapfrog):
    """A swing whose stiffness is right in size and wrong in its axes."""
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    stiffness = Stiffness(jnp.asarray([6.0, 3.0]), jnp.asarray(turn))
    swing, pairs = Swing(of_counts(ws.likelihoods.Poisson()), stiffness, num_leapfrog), exact_pairs(path, time)
    return Pairs(pairs, averaged(swing, path, jnp.asarray(time), pairs))


def known_means(path, time):
    """E[x₁ | x_t] and E[∇ log L | x_t]; the trapezoid rule is exact for smooth functions that vanish at the ends."""
    at = path.coefficients(jnp.asarray(time))
    a, b = float(at.a), float(at.b)
    line = np.linspace(-9, 9, 401) * a / np.hypot(a, b)
    z = b / (a**2 + b**2) * X + np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    log_mass = log_likelihood(z) - np.sum(z**2, axis=1) / 2 - np.sum((X - b * z) ** 2, axis=1) / (2 * a**2)
    mass = np.exp(log_mass - log_mass.max())
    return (mass @ z / mass.sum(), mass @ slopes(z) / mass.sum())


def assert_mean(values, known):
    """Within the Monte-Carlo error, which is not zero."""
    error = np.std(values, axis=0) / len(values) ** 0.5
    assert np.all(error > 0)
    assert np.all(np.abs(np.mean(values, axis=0) - known) < ERRORS * error)


@PATHS
@pytest.mark.parametrize("num_leapfrog", [1, 2, 3, 16])
def test_means_are_those_of_single_draws_for_every_step_size(path, num_leapfrog):
    for time in TIMES:
        draws, averages = swung(path, time, num_leapfrog)
        for ours, single, known in zip(averages[1:], draws[1:], known_means(path, time), strict=True):
            assert_mean(np.asarray(single), known)
            assert_mean(np.asarray(ours), known)
        np.testing.assert_array_equal(averages.source, draws.source)


@PATHS
@pytest.mark.parametrize("num_leapfrog", [2, 3, 16])
def test_averages_are_conditional_means_of_the_draws(path, num_leapfrog):
    """Of a trajectory's states the draw is each with the probability that is its weight: E[draw | trajectory] is the
    average, so that what it leaves out is uncorrelated with it, and it never has more variance than the draw.
    """
    for time in TIMES:
        draws, averages = swung(path, time, num_leapfrog)
        for ours, single, known in zip(averages[1:], draws[1:], known_means(path, time), strict=True):
            left_out, kept = np.asarray(single - ours), np.asarray(ours) - known
            assert_mean(left_out[:, :, None] * kept[:, None, :], 0)
            single_variance = np.var(np.asarray(single), axis=0)
            assert np.all(np.var(np.asarray(ours), axis=0) < (0.1 if num_leapfrog == 16 else 1.0) * single_variance)


class Walled(ws.likelihoods.Poisson):
    """Poisson regression with a log-likelihood of `beyond` where a predictor is above 1.2."""

    beyond: float = eqx.field(static=True, default=-np.inf)

    def log_density(self, outputs, y, own=ws.likelihoods.NO_OWN):
        return jnp.where(outputs[:, 0] < 1.2, ws.likelihoods.Poisson.log_density(self, outputs, y, own), self.beyond)


@pytest.mark.parametrize("beyond", [np.nan, -np.inf])
def test_states_that_are_not_finite_have_no_weight(beyond):
    """Targets end at a wall that most trajectories cross: the mean is still that of the draws."""
    path, time = Trigonometric(), 0.4
    pairs = exact_pairs(path, time, inside=lambda z: np.all(z @ INPUTS.T < 1.2, axis=1))
    swing = Swing(of_counts(Walled(beyond)), Stiffness(jnp.asarray([1.0, 1.0]), None), 8)
    averages = averaged(swing, path, jnp.asarray(time), pairs)
    for ours, single in zip(averages[1:], pairs[1:], strict=True):
        assert_mean(np.asarray(ours - single), 0)


def test_the_draw_is_left_where_all_else_diverges():
    """A likelihood so narrow that the next state overflows, as do all after it."""
    inputs = 1e3 * np.array([[1.0, 0.3], [-1.0, 0.4], [0.2, -1.0]])
    target = of_counts(ws.likelihoods.Poisson(), inputs, np.ones(3))
    swing = Swing(target, Stiffness(jnp.zeros(2), None), 5)
    targets = 1e-4 * np.random.default_rng(0).normal(size=(50, 2))
    pairs = Pair(*map(jnp.asarray, (np.random.default_rng(1).normal(size=(50, 2)), targets, target.gradients(targets))))
    averages = averaged(swing, Straight(), jnp.asarray(0.5), pairs)
    # Targets come from sums and differences of numbers of order one; gradients change by 1e6 times that.
    np.testing.assert_allclose(averages.target, targets, atol=1e-14)
    np.testing.assert_allclose(averages.gradient, pairs.gradient, rtol=1e-9, atol=1e-7)


@functools.cache
def moments():
    """Of the linear problem, in whitened weights."""
    return problem().mean / SCALE, problem().covariance / SCALE**2


def normal_target():
    posterior = problem().posterior
    return Target(posterior, WhitenedSource.of(posterior))


def normal_stiffness():
    """Σ⁻¹ − 1, which is the precision of the likelihood."""
    values, axes = np.linalg.eigh(np.linalg.inv(moments()[1]) - np.eye(3))
    return Stiffness(jnp.asarray(values), jnp.asarray(axes))


def normal_pairs(count):
    mean, covariance = moments()
    generator = np.random.default_rng(4)
    targets = jnp.asarray(generator.multivariate_normal(mean, covariance, size=count))
    gradients = jax.vmap(lambda z: gradient(z, mean, covariance))(targets)
    return Pair(jnp.asarray(generator.normal(size=(count, 3))), targets, gradients)


@PATHS
def test_a_full_turn_takes_out_the_noise_of_a_normal(path):
    """What is left falls with the square of the step size or faster, for correlated weights."""
    (mean, covariance), pairs = moments(), normal_pairs(400)
    for time in map(jnp.asarray, (0.3, 0.8)):
        x = point(path, time, pairs.source, pairs.target)
        targets = jax.vmap(functools.partial(gaussians.target(path, mean, covariance), time))(x)
        pulls = jax.vmap(lambda x, time=time: known_pull(path, time, x, mean, covariance))(x)
        swings = [Swing(normal_target(), normal_stiffness(), number) for number in (7, 15, 31, 63)]
        found = [pairs, *(averaged(swing, path, time, pairs) for swing in swings)]
        errors = np.array([[np.std(pair.target - targets), np.std(pair.gradient - pulls)] for pair in found])
        assert np.all(errors[2:] < errors[1:-1] / 3 + 1e-13)
        assert np.all(errors[-1] < 0.01 * errors[0])


@PATHS
def test_both_ends_are_harmless_in_single_precision(path):
    with jax.enable_x64(False):
        pairs, swing = normal_pairs(100), Swing(normal_target(), normal_stiffness(), 16)
        assert pairs.target.dtype == jnp.float32
        at = lambda time: averaged(swing, path, jnp.float32(time), pairs)
        for time in (1 - 1e-7, 1.0):
            # A few roundings of 6e-8, and a = 2e-7 at most; Σ⁻¹ has entries of some ten.
            np.testing.assert_allclose(at(time).target, pairs.target, atol=5e-6)
            np.testing.assert_allclose(at(time).gradient, pairs.gradient, atol=2e-4)
        for time in (0.0, 1e-7):
            mean = np.broadcast_to(moments()[0], (100, 3))
            error, noise = np.std(at(time).target - mean), np.std(pairs.target - mean)
            assert error < 0.1 * noise


def test_points_are_those_of_the_pairs_as_they_were():
    class Place(OfPull):
        """Says where it is asked."""

        def error(self, path, time, model, x, pair):
            return jnp.sum(jnp.cos(x)) + time

    pairs, objective = normal_pairs(50), Objective(Trigonometric(), Place())
    swing = Swing(normal_target(), normal_stiffness(), 3)
    place = lambda **options: objective.loss(jax.random.key(0), lambda time, x: x, *pairs, **options)
    assert float(place()) == float(place(averaged=swing))


class TruePull(eqx.Module):
    """What the linear problem's pull is, with a curvature."""

    path: Trigonometric
    curvature: Curvature

    def __call__(self, time, x):
        return known_pull(self.path, time, x, *moments())


def test_the_loss_of_the_true_pull_is_nearly_nothing():
    """The best curvature of each weight leaves what correlations have in noise; a swing leaves less than 1%."""
    pairs, path = normal_pairs(256), Trigonometric()
    values = np.diag(np.linalg.inv(moments()[1])) - 1
    model = TruePull(path, Curvature.of(jnp.asarray(values), jnp.arange(3)))
    swing = Swing(normal_target(), normal_stiffness(), 31)
    loss = eqx.filter_jit(functools.partial(Objective(path, OfPull()).loss, jax.random.key(0), model, *pairs))
    assert float(loss(averaged=swing)) < 0.01 * float(loss())


class OfKnownPull(OfPull):
    """Regression on the linear problem's pull itself."""

    def error(self, path, time, model, x, pair):
        known = known_pull(path, time, x, *moments())
        return factors(path, time).cost * jnp.mean((model(time, x) - known) ** 2)


@PATHS
def test_averages_have_the_gradient_of_the_pull(path):
    """∇E w‖f − y‖² = ∇E w‖f − G‖² with y of few coarse steps and a wrong stiffness, for a model that is far from G."""
    curvature = Curvature.of(jnp.asarray([0.3, 4.0]), jnp.asarray([0, 1, 1]))
    model = LinearPull(0.3 * jnp.eye(3) + 0.1, jnp.asarray([1.0, 0.0, -1.0]), curvature)
    values, axes = normal_stiffness()
    pairs, swing = normal_pairs(NUM_PAIRS), Swing(normal_target(), Stiffness(1.5 * values, axes), 2)

    @eqx.filter_jit
    def slope(model, prediction, swing, pairs):
        def of(model, key, pair):
            alone = jax.tree.map(lambda leaf: leaf[None], pair)
            return Objective(path, prediction).loss(key, model, *alone, averaged=swing)

        keys = jax.random.split(jax.random.key(1), NUM_PAIRS)
        return jax.vmap(lambda key, pair: eqx.filter_grad(of)(model, key, pair))(keys, pairs)

    ours, known = slope(model, OfPull(), swing, pairs), slope(model, OfKnownPull(), swing, pairs)
    assert_mean(np.asarray(ours.matrix - known.matrix), 0)
    assert_mean(np.asarray(ours.shift - known.shift), 0)


def test_stiffness_is_the_precision_of_a_normal_likelihood():
    pairs, precision = normal_pairs(NUM_PAIRS), np.linalg.inv(moments()[1])
    values, axes = stiffness_of(np.asarray(pairs.target), np.asarray(pairs.gradient), np.arange(3))
    found = np.asarray(axes) @ np.diag(values) @ np.asarray(axes).T
    # Products of normals with covariance P have variance P_ii P_jj + P_ij².
    error = np.sqrt((np.outer(np.diag(precision), np.diag(precision)) + precision**2) / NUM_PAIRS)
    assert np.all(np.abs(found - (precision - np.eye(3))) < ERRORS * error)
    np.testing.assert_allclose(np.asarray(axes).T @ np.asarray(axes), np.eye(3), atol=1e-14)
    vector = jnp.asarray([0.3, -1.0, 2.0])
    stiffness = Stiffness(values, axes)
    np.testing.assert_allclose(stiffness.vector(stiffness.along(vector)), vector, rtol=1e-14)


def test_stiffness_of_few_draws_is_one_number_for_each_orbit():
    """Draws of N(0, 1/P): slopes −P z have the variance P, and means of n squares an error of √(2/n) of their size."""
    labels = np.repeat([0, 1, 2, 0], 10)
    precision = np.array([5.0, 60.0, 1.0])
    z = np.random.default_rng(6).normal(size=(200, 40)) / precision[labels] ** 0.5
    values, axes = stiffness_of(z, z - precision[labels] * z, labels)
    assert axes is None
    assert np.all(np.asarray(values) >= 0)
    for orbit, count in ((0, 20), (1, 10), (2, 10)):
        of_orbit = np.asarray(values)[labels == orbit]
        assert np.ptp(of_orbit) == 0
        assert abs(of_orbit[0] - (precision[orbit] - 1)) < ERRORS * precision[orbit] * (2 / (200 * count)) ** 0.5


METHOD = dataclasses.replace(tiny.METHOD, num_steps=220, architecture=Plain(tiny.SIZES), num_leapfrog=4)


def test_a_flow_trains_on_averages_and_a_killed_training_ends_in_the_same_bits(tmp_path, monkeypatch):
    run = functools.partial(METHOD.run, jax.random.key(0), problem().posterior, draws=known_draws((20, 50)))
    trained = run()
    single = dataclasses.replace(METHOD, num_leapfrog=0)
    without = single.run(jax.random.key(0), problem().posterior, draws=known_draws((20, 50)))
    ours, theirs = (np.asarray(flow.facts["held_out_losses"]) for flow in (trained, without))
    assert np.all(np.isfinite(ours)) and ours[-1] < theirs[-1]
    monkeypatch.setattr(loop, "_next_count", lambda count, seconds, capacity: 1)
    monkeypatch.setattr(recorder, "_WRITE_SHARE", -1.0)  # writes are due at once, however slow the machine is
    monkeypatch.setattr(recorder, "_WORK_PER_WRITE", 0.0)
    with pytest.raises(Killed):
        run(store=tmp_path, progress=Ending(2))
    # What is left fits into one chunk; a training from the beginning would be killed again.
    resumed = run(store=tmp_path, resume=True, progress=Ending(2))
    for name in ("losses", "held_out_losses"):
        assert resumed.facts[name] == trained.facts[name] and len(trained.facts[name]) == 11
    for one, other in zip(numbers(resumed), numbers(trained), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_negative_number_of_steps_is_named():
    with pytest.raises(InputError, match="`num_leapfrog` of FlowMatching must be .* got -1"):
        dataclasses.replace(METHOD, num_leapfrog=-1)
