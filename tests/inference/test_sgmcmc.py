"""Stochastic-gradient chains against the exact moments of their own recursions, and their bias against its order.

`recursions` derives the moments. Steps are given in units of the stiffest direction: h λ for Langevin chains, h √λ for
those with momentum, with λ the largest precision of the target.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.linalg import hadamard
from tests.inference.recursions import (
    gradient_covariance,
    langevin_covariance,
    preconditioned_covariance,
    underdamped_autocovariance,
    underdamped_covariance,
)
from tests.known import Linear, assert_moments, inferred_noise, linear, monte_carlo_error

import weightscape as ws
from weightscape.inference.sgmcmc.langevin import Langevin
from weightscape.inference.sgmcmc.minibatches import Minibatches
from weightscape.inference.sgmcmc.schedules import Constant
from weightscape.inference.sgmcmc.underdamped import Underdamped

PROBLEM = linear()  # correlated, with precisions from 63 to 1300
PRECISION = np.linalg.inv(PROBLEM.covariance)
STIFFEST = np.linalg.eigvalsh(PRECISION)[-1]
LENGTHS = {"num_chains": 256, "num_draws": 250, "num_warmup": 500, "thin": 20}


def even_noise() -> Linear:
    """Orthogonal inputs of ±1, and a residual of ±σ in each point: gradient noise is alike in all directions."""
    columns, noise = hadamard(64).astype(float), 0.3
    x = columns[:, 1:5]
    y = x @ np.array([0.5, -0.5, 1.0, 0.0]) + noise * columns[:, 5]
    return regression(x, y, noise)


def bad_scales() -> Linear:
    """Posterior precisions from 3 to 30,000, correlated."""
    generator = np.random.default_rng(6)
    x, noise = generator.normal(size=(30, 3)) @ np.array([[10.0, 0.3, 0.02], [0, 1.0, 0.05], [0, 0, 0.1]]), 0.3
    y = x @ np.ones(3) + noise * generator.normal(size=30)
    return regression(x, y, noise)


def regression(x, y, noise) -> Linear:
    """Linear regression without bias, with a standard normal prior."""
    covariance = np.linalg.inv(x.T @ x / noise**2 + np.eye(x.shape[1]))
    model = ws.Model(ws.networks.MLP(hidden=(), bias=False), ws.likelihoods.Gaussian(noise), ws.priors.Normal(1.0))
    return Linear(model.condition(ws.Batch(x, y)), covariance @ x.T @ y / noise**2, covariance, np.nan, x, y, noise)


def weights(draws):
    return np.asarray(draws.params.network["layer0"]["weight"], np.float64)[..., 0]


def at_mean(problem: Linear) -> ws.Parameters:
    return ws.Parameters({"layer0": {"weight": jnp.asarray(problem.mean, jnp.float32)[:, None]}}, {}, ())


def products(centred):
    return centred[..., :, None] * centred[..., None, :]


def excess(values):
    """By how much the mean of δᵀAδ/d exceeds 1, and its Monte-Carlo error."""
    centred = values - PROBLEM.mean
    squares = np.einsum("cdi,ij,cdj->cd", centred, PRECISION, centred) / 3
    return squares.mean() - 1, float(monte_carlo_error(squares))


def assert_precise_moments(values, covariance, problem: Linear = PROBLEM):
    """Moments are met within 5 errors, which are below 3 % of the variances and returned."""
    assert_moments(values, problem.mean, covariance)
    errors = np.diag(monte_carlo_error(products(values - problem.mean)))
    assert np.all(errors < 0.03 * np.diag(covariance))
    return errors


def assert_near_moments(values, mean, covariance, bias):
    """Moments are met within 5 errors and a bias, which is relative to the standard deviations."""
    deviation = np.sqrt(np.diag(covariance))
    mean_error, error = monte_carlo_error(values), monte_carlo_error(products(values - mean))
    assert np.all(mean_error < 0.05 * deviation) and np.all(np.diag(error) < 0.05 * deviation**2)
    assert np.all(np.abs(values.mean(axis=(0, 1)) - mean) < 5 * mean_error + bias * deviation)
    difference = np.abs(products(values - mean).mean(axis=(0, 1)) - covariance)
    assert np.all(difference < 5 * error + bias * np.outer(deviation, deviation))


def test_recursion_without_minibatches_is_the_closed_form():
    h = 1 / STIFFEST
    closed_form = PROBLEM.covariance @ np.linalg.inv(np.eye(3) - h / 4 * PRECISION)  # 1/(λ (1 − hλ/4))
    np.testing.assert_allclose(langevin_covariance(PROBLEM, h), closed_form, rtol=1e-8)


def test_ula_has_its_closed_form_covariance_and_a_bias_of_order_h():
    measured, exact = [], []
    for h in (1 / STIFFEST, 0.5 / STIFFEST):
        values = weights(ws.ULA(**LENGTHS, step_size=h).run(jax.random.key(0), PROBLEM.posterior))
        errors = assert_precise_moments(values, langevin_covariance(PROBLEM, h))
        # It is not the target's covariance that was met.
        assert np.max(np.diag(langevin_covariance(PROBLEM, h) - PROBLEM.covariance) / errors) > 6
        measured.append(excess(values))
        exact.append(np.trace(PRECISION @ langevin_covariance(PROBLEM, h)) / 3 - 1)
    (full, full_error), (half, half_error) = measured
    ratio = exact[0] / exact[1]
    assert 2 < ratio < 2.4  # 2 as h → 0
    assert half > 6 * half_error
    assert abs(full - ratio * half) < 5 * (full_error + ratio * half_error)


@pytest.mark.parametrize("scale", [0.2, 0.1])
def test_sgld_has_the_covariance_of_its_recursion(scale):
    h, batch_size = scale / STIFFEST, 8
    method = ws.SGLD(**LENGTHS | {"thin": round(8 / scale), "num_warmup": 1500}, step_size=h, batch_size=batch_size)
    values = weights(method.run(jax.random.key(1), PROBLEM.posterior))
    errors = assert_precise_moments(values, langevin_covariance(PROBLEM, h, batch_size))
    # The minibatches' part of it is seen: without it the covariance would be another.
    part = langevin_covariance(PROBLEM, h, batch_size) - langevin_covariance(PROBLEM, h)
    assert np.max(np.diag(part) / errors) > 6


def test_sghmc_is_exact_on_a_gaussian_with_exact_gradients():
    h, friction = 1 / np.sqrt(STIFFEST), 10.0
    exact = underdamped_covariance(PROBLEM, h, friction)
    np.testing.assert_allclose(exact[:3, :3], PROBLEM.covariance, rtol=1e-6)
    draws = ws.SGHMC(**LENGTHS, step_size=h, friction=friction).run(jax.random.key(2), PROBLEM.posterior)
    assert_precise_moments(weights(draws), PROBLEM.covariance)
    kinetic = np.asarray(draws.info["kinetic_temperature"], np.float64)
    assert abs(kinetic.mean() - np.trace(exact[3:, 3:]) / 3) < 5 * monte_carlo_error(kinetic)


def test_momentum_persists():
    h, friction = 0.5 / np.sqrt(STIFFEST), 5.0
    method = ws.SGHMC(**LENGTHS | {"thin": 1}, step_size=h, friction=friction)
    centred = weights(method.run(jax.random.key(3), PROBLEM.posterior)) - PROBLEM.mean
    for lag in (1, 4, 12):
        lagged = centred[:, lag:, :, None] * centred[:, :-lag, None, :]
        exact = underdamped_autocovariance(PROBLEM, h, friction, lag)
        assert np.all(np.abs(lagged.mean(axis=(0, 1)) - exact) < 5 * monte_carlo_error(lagged, 2))


@pytest.mark.parametrize(
    ("scale", "variance"), [(0.2, 0.0), pytest.param(0.1, 0.0, marks=pytest.mark.slow), (0.2, 1500.0)]
)
def test_sghmc_has_the_covariance_of_its_recursion(scale, variance):
    h, friction, batch_size = scale / np.sqrt(STIFFEST), 50.0, 8
    method = ws.SGHMC(
        **LENGTHS | {"num_warmup": round(300 / scale), "thin": round(10 / scale)},
        step_size=h,
        friction=friction,
        batch_size=batch_size,
        gradient_noise=variance,
    )
    values = weights(method.run(jax.random.key(4), PROBLEM.posterior))
    exact = underdamped_covariance(PROBLEM, h, friction, batch_size, variance)[:3, :3]
    errors = assert_precise_moments(values, exact)
    assert np.max(np.abs(np.diag(exact - PROBLEM.covariance)) / errors) > 6


def test_bias_of_sghmc_with_minibatches_is_of_order_h():
    """By the recursion, which the chain was shown to follow."""
    covariances = [underdamped_covariance(PROBLEM, h / np.sqrt(STIFFEST), 50.0, 8)[:3, :3] for h in (0.01, 0.005)]
    first, second = (np.trace(PRECISION @ covariance) / 3 - 1 for covariance in covariances)
    np.testing.assert_allclose(first / second, 2, rtol=0.02)


@pytest.mark.slow
def test_sgnht_has_a_bias_of_order_two():
    start = ws.SGHMC(**LENGTHS | {"num_draws": 1}, step_size=0.5 / np.sqrt(STIFFEST))
    measured = []
    for scale in (0.8, 0.4):
        method = ws.SGNHT(
            **LENGTHS | {"num_warmup": round(600 / scale), "thin": round(16 / scale)},
            step_size=scale / np.sqrt(STIFFEST),
            friction=10.0,
        )
        draws = method.run(jax.random.key(5), PROBLEM.posterior, init=start)
        measured.append(excess(weights(draws)))
    (full, full_error), (half, half_error) = measured
    # Too narrow, and by more than twice as much with twice the step: the bias is not of order one.
    assert full < 0 and abs(full) - 2 * abs(half) > 5 * (full_error + 2 * half_error)
    # 0.03 is the bias at 0.4 (0.018 ± 0.003) with five errors.
    assert_near_moments(weights(draws), PROBLEM.mean, PROBLEM.covariance, bias=0.03)
    thermostat = np.asarray(draws.info["thermostat"], np.float64)[..., None]
    assert_near_moments(thermostat, np.array([10.0]), np.array([[100 / 3]]), bias=0.05)  # N(a, a²/d)


@pytest.mark.slow
def test_thermostat_absorbs_gradient_noise():
    problem = even_noise()
    h, friction, batch_size = 0.2 * np.sqrt(problem.covariance[0, 0]), 10.0, 16
    settings = {"step_size": h, "friction": friction, "batch_size": batch_size}
    heated = underdamped_covariance(problem, h, friction, batch_size)[:4, :4]
    assert np.all(np.diag(heated) > 1.8 * np.diag(problem.covariance))
    draws = ws.SGHMC(**LENGTHS, **settings).run(jax.random.key(6), problem.posterior)
    assert_precise_moments(weights(draws), heated, problem)
    draws = ws.SGNHT(**LENGTHS, **settings).run(jax.random.key(7), problem.posterior)
    assert_near_moments(weights(draws), problem.mean, problem.covariance, bias=0.02)
    # The friction that balances noise of variance V in each gradient, on top of what is injected, is hV/2.
    variance = gradient_covariance(problem, batch_size)(problem.covariance)[0, 0]
    np.testing.assert_allclose(np.mean(draws.info["thermostat"]), friction + h * variance / 2, rtol=0.03)
    np.testing.assert_allclose(np.mean(draws.info["kinetic_temperature"]), 1, rtol=0.02)


@pytest.mark.parametrize("kind", [*(pytest.param(kind, marks=pytest.mark.slow) for kind in ("ula", "sghmc")), "sgnht"])
def test_skewed_target_has_the_moments_of_quadrature(kind):
    """With a bias below hλ, or h²λ with momentum, in standard deviations; λ is the curvature near the mode."""
    problem = inferred_noise()
    near_mode = ws.Parameters({"layer0": {"weight": jnp.full((1, 1), 0.7)}}, {"scale": jnp.asarray(0.35)}, ())
    flat, unravel = ravel_pytree(problem.posterior.unconstrain(near_mode))
    curvature = -jax.hessian(lambda z: problem.posterior.log_density(unravel(z)))(flat)
    stiffest = float(np.linalg.eigvalsh(curvature)[-1])
    method, bias = {
        "ula": (ws.ULA(**LENGTHS | {"thin": 30}, step_size=0.1 / stiffest), 0.1),
        "sghmc": (ws.SGHMC(**LENGTHS, step_size=0.25 / np.sqrt(stiffest), friction=2.0), 0.25**2),
        "sgnht": (ws.SGNHT(**LENGTHS, step_size=0.2 / np.sqrt(stiffest), friction=2.0), 0.2**2),
    }[kind]
    draws = method.run(jax.random.key(8), problem.posterior)
    scale = np.asarray(draws.params.likelihood["scale"], np.float64)
    values = np.stack([weights(draws)[..., 0], scale], axis=-1)
    assert_near_moments(values, problem.mean, problem.covariance, bias)


def test_temperature_two_doubles_the_covariance():
    # At temperature T and step T h the recursion in δ/√T is that at temperature 1 and step h.
    h = 1 / STIFFEST
    method = ws.ULA(**LENGTHS, step_size=2 * h, temperature=2.0)
    assert_precise_moments(
        weights(method.run(jax.random.key(9), PROBLEM.posterior)), 2 * langevin_covariance(PROBLEM, h)
    )


def test_rmsprop_is_learned_then_frozen_and_has_its_recursions_covariance():
    problem, num_chains, h = bad_scales(), 128, 5e-4
    sampler = Langevin(problem.posterior, Minibatches(None), Constant(h), ws.RMSprop())

    def chain(key):
        walk = lambda step: lambda state, i: (step(jax.random.fold_in(key, i), state, i)[0],) * 2
        state, _ = jax.lax.scan(walk(sampler.adapt), sampler.init(at_mean(problem)), jnp.arange(4000))
        settled = sampler.settle(state)
        last, path = jax.lax.scan(walk(sampler.move), settled, 4000 + jnp.arange(12_000))
        diagonal = sampler.preconditioner.apply(settled.preconditioner, jax.tree.map(jnp.ones_like, settled.position))
        return path.position.network["layer0"]["weight"][::40, :, 0], diagonal, settled, last

    values, diagonal, settled, last = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(10), num_chains))
    assert jax.tree.all(jax.tree.map(np.array_equal, settled.preconditioner, last.preconditioner))
    diagonal = np.asarray(diagonal.network["layer0"]["weight"], np.float64)[..., 0]
    exact = np.mean([preconditioned_covariance(problem, h, row) for row in diagonal], axis=0)
    assert_precise_moments(np.asarray(values, np.float64), exact, problem)
    # G is N over the root of the gradient's variance A Σ A; its mean over chains is larger, v being noisy.
    precision = np.linalg.inv(problem.covariance)
    gradient_deviation = np.sqrt(np.diag(precision @ exact @ precision))
    np.testing.assert_allclose(diagonal.mean(axis=0), 30 / gradient_deviation, rtol=0.15)


def test_rmsprop_keeps_small_gradients_and_bounds_its_steps():
    tree = lambda *entries: ws.Parameters(jnp.asarray(entries), {}, ())
    rmsprop = ws.RMSprop(decay=0.9, floor=1e-6)
    state = rmsprop.learn(rmsprop.init(tree(0.0, 0.0, 0.0)), tree(1e-4, 1.0, 0.0))
    diagonal = lambda state: rmsprop.apply(state, tree(1.0, 1.0, 1.0)).network
    np.testing.assert_allclose(diagonal(state)[:2], [1 / np.sqrt(0.9), 1.0], rtol=1e-3)
    np.testing.assert_allclose(diagonal(rmsprop.settle(state)), [1e4, 1.0, 1e6], rtol=0.02)
    root = rmsprop.apply_root(rmsprop.settle(state), tree(1.0, 1.0, 1.0)).network
    np.testing.assert_allclose(root**2, diagonal(rmsprop.settle(state)), rtol=1e-5)
    following = ws.RMSprop(keep_adapting=True)
    assert following.settle(state) is state and not following.is_fixed


def test_minibatch_gradients_are_unbiased_with_the_derived_covariance():
    batch_size, position = 8, at_mean(PROBLEM)
    shifted = jax.tree.map(lambda leaf: leaf + 0.05, position)
    keys = jax.random.split(jax.random.key(11), 40_000)
    estimate = jax.jit(jax.vmap(Minibatches(batch_size).gradient, (0, None, None)))
    gradients = np.asarray(estimate(keys, PROBLEM.posterior, shifted).network["layer0"]["weight"], np.float64)[..., 0]
    exact = -PRECISION @ np.full(3, 0.05)
    assert_near_moments(gradients.reshape(200, 200, 3), exact, np.cov(gradients.T), bias=0.0)
    at_mode = np.asarray(estimate(keys, PROBLEM.posterior, position).network["layer0"]["weight"], np.float64)[..., 0]
    covariance = gradient_covariance(PROBLEM, batch_size)(np.zeros((3, 3)))
    assert_near_moments(at_mode.reshape(200, 200, 3), np.zeros(3), covariance, bias=0.0)


def test_half_batches_estimate_the_gradients_variance():
    position, noise = at_mean(PROBLEM), ws.HalfBatchNoise(0.9999)
    sampler = Underdamped(
        PROBLEM.posterior, Minibatches(8), Constant(1e-9), ws.inference.Identity(), noise, jnp.asarray(1.0)
    )

    def learn(key):
        walk = lambda state, i: (sampler.adapt(jax.random.fold_in(key, i), state, i)[0], None)
        state, _ = jax.lax.scan(walk, sampler.init(position), jnp.arange(500))
        return noise.variance(state.gradient_noise, position).network["layer0"]["weight"][:, 0]

    estimates = np.asarray(jax.jit(jax.vmap(learn))(jax.random.split(jax.random.key(12), 64)), np.float64)
    exact = np.diag(gradient_covariance(PROBLEM, 8)(np.zeros((3, 3))))
    error = estimates.std(axis=0, ddof=1) / np.sqrt(64)
    assert np.all(error < 0.02 * exact)
    assert np.all(np.abs(estimates.mean(axis=0) - exact) < 5 * error)
