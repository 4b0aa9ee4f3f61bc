"""Guidance: the guided field and where it ends are known for a normal flow and a linear model."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.flow import gaussians, tiny
from tests.flow.linear_flows import problem
from tests.flow.test_flow_prior import flow as normal_flow
from tests.flow.test_transfer import flow_over, posterior

import weightscape as ws
from weightscape.core import InputError
from weightscape.flow import FixedSteps, Geometric, Straight, Trigonometric, WhitenedSource, guided
from weightscape.flow.guidance import GuidanceField
from weightscape.flow.objective import Objective

pytestmark = pytest.mark.usefixtures("x64")
KEY = jax.random.key(0)
SCALES = np.array([0.5, 2.0, 1.0])


class Velocity(eqx.Module):
    """The velocity from N(0, 1) to N(m, Σ) on a path."""

    path: Any
    mean: Any
    covariance: Any

    def __call__(self, time, x):
        return gaussians.velocity(self.path, self.mean, self.covariance)(time, x)


@eqx.filter_jit
def said(field, time, z):
    return field(time, z)


def normal(path, mean, covariance):
    """A Euclidean flow with that velocity, from a source of three sizes."""
    return normal_flow(model=Velocity(path, jnp.asarray(mean), jnp.asarray(covariance)), objective=Objective(path))


def linear_task(slope):
    """A posterior with log L(θ) = c + cᵀθ up to 1e-8: noise of deviation 1e4 and targets of its square."""
    network = ws.networks.MLP(hidden=(), bias=False)
    model = ws.Model(network, ws.likelihoods.Gaussian(1e4), ws.priors.Normal(1.0))
    return model.condition(ws.Batch(np.eye(3), 1e8 * np.asarray(slope)))


PATHS = pytest.mark.parametrize("path", [Straight(), Trigonometric()], ids=["straight", "trigonometric"])


@PATHS
def test_the_guided_field_is_the_known_one(path):
    """v + s w S Xᵀ(y − X S x̂₁)/σ² with x̂₁ = E[x₁ | x_t = x], which `gaussians` has; at both ends too.

    At s = 0 it is v, bit by bit.
    """
    known, strength = problem(), 0.7
    flow = normal(path, gaussians.MEAN, gaussians.COVARIANCE)
    still, field = (guided(flow, known.posterior, each, num_products=0).flow.model for each in (0.0, strength))
    x = np.array([0.4, -1.0, 2.0])
    for time in jnp.array([0.0, 0.3, 0.8, 1.0]):
        at = path.coefficients(time)
        ahead = SCALES * np.asarray(gaussians.target(path)(time, x))
        gradient = SCALES * (known.x.T @ (known.y - known.x @ ahead)) / known.noise**2
        share = at.a * (at.a * at.b_rate - at.b * at.a_rate) / (at.a**2 + at.b**2)
        expected = gaussians.velocity(path)(time, x) + strength * share * gradient
        np.testing.assert_allclose(field(time, jnp.asarray(x)), expected, rtol=1e-9)
        np.testing.assert_array_equal(still(time, jnp.asarray(x)), flow.model(time, jnp.asarray(x)))


@pytest.mark.parametrize("num_products", [0, 3])
def test_a_normal_is_tilted_exactly_by_a_linear_likelihood(num_products):
    """q = N(0, S²) and L = exp cᵀθ: q L^s is N(s S² c, S²), and each draw is moved by s S² c."""
    slope, strength = np.array([0.8, -0.3, 0.5]), 1.5
    flow = normal(Straight(), np.zeros(3), np.eye(3))
    led = guided(flow, linear_task(slope), strength, num_products=num_products)
    shift = strength * SCALES**2 * slope
    position = led.sample_position(KEY)
    start = SCALES * np.asarray(flow.source.sample(KEY))
    np.testing.assert_allclose(np.ravel(position.network["layer0"]["weight"]), start + shift, atol=1e-5)
    expected = gaussians.log_normal(np.ravel(position.network["layer0"]["weight"]), shift, np.diag(SCALES**2))
    np.testing.assert_allclose(led.log_density(position), expected, atol=1e-5)


@pytest.mark.parametrize(("path", "strength"), [(Straight(), 0.5), (Trigonometric(), 40.0)], ids=["weak", "strong"])
def test_a_normal_is_tilted_exactly_by_a_normal_likelihood(path, strength):
    """q = N(0, S²) and L^s that of a linear model: q L^s is N(Σ s Xᵀy/σ², Σ) with Σ = (S⁻² + s XᵀX/σ²)⁻¹.

    Three products are enough for three weights. The way is solved to 2e-5. Deviations of a mean are √(Σ_ii / n), of a
    covariance √((Σ_ii Σ_jj + Σ_ij²) / n), and five are allowed. Without products a strength of 40 leads far off.
    """
    known, num_draws = problem(), 4000
    flow = normal(path, np.zeros(3), np.eye(3)).with_solver(FixedSteps(200, num_nodes=40))
    led = guided(flow, known.posterior, strength, num_products=3)
    covariance = np.linalg.inv(np.diag(SCALES**-2) + strength * known.x.T @ known.x / known.noise**2)
    mean = strength * covariance @ known.x.T @ known.y / known.noise**2
    drawn = led.sample(KEY, num_draws)
    weights = np.asarray(drawn.params.network["layer0"]["weight"]).reshape(num_draws, 3)
    assert drawn.log_proposal is None
    error = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / num_draws)
    assert np.all(np.abs(weights.mean(0) - mean) < 5 * np.sqrt(np.diag(covariance) / num_draws))
    assert np.all(np.abs(np.cov(weights.T) - covariance) < 5 * error)
    few = led.flow.log_densities(drawn[:, :12])[0]
    np.testing.assert_allclose(few, gaussians.log_normal(weights[:12], mean, covariance), atol=1e-4)
    if strength > 1:
        astray = guided(flow, known.posterior, strength, num_products=0).sample_position(KEY)
        assert not np.all(np.abs(np.ravel(astray.network["layer0"]["weight"])) < 1e3)


@pytest.mark.slow
def test_on_spheres_the_guided_field_is_tangent_and_constant_along_normals():
    """So the trace of its Jacobian is the divergence there (`tangent_field`). At strength 0 it is v, bit by bit."""
    flow, task = flow_over(posterior(), Geometric()), posterior(seed=7)
    time, z = jnp.asarray(0.4), flow.source.sample(KEY)
    still, led = (guided(flow, task, strength, num_products=0).flow.model for strength in (0.0, 0.5))
    known, there = said(flow.model, time, z), said(led, time, z)
    np.testing.assert_array_equal(said(still, time, z), known)
    assert float(jnp.abs(there - known).max()) > 0.1
    np.testing.assert_allclose(flow.source.manifold.project(z, there), there, atol=1e-12)
    np.testing.assert_allclose(said(led, time, jnp.where(flow.source.curved > 0, 1.3 * z, z)), there, rtol=1e-10)
    ahead = flow.source.manifold.exp(z, 0.6 * known)
    gradient = jax.grad(lambda z: task.log_likelihood(flow.source.position(z)))(ahead)
    share = 0.5 * 0.6 / (0.6**2 + 0.4**2)
    expected = known + share * flow.source.manifold.project(z, gradient)
    np.testing.assert_allclose(there, expected, rtol=1e-10)


@pytest.mark.slow
def test_guidance_raises_the_likelihood_and_stays_on_the_spheres():
    """Of 64 networks drawn with the same keys. At strength 0 they are those of the flow, bit by bit."""
    task = posterior(seed=7)
    flow = flow_over(posterior(), Geometric())
    still, led = (guided(flow, task, strength).sample(KEY, 64) for strength in (0.0, 0.01))
    jax.tree.map(np.testing.assert_array_equal, still.params, flow.sample(KEY, 64).params)
    rows = lambda draws: jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), draws.positions())
    gain = jax.vmap(task.log_likelihood)(rows(led)) - jax.vmap(task.log_likelihood)(rows(still))
    assert np.mean(gain) > 5 * np.std(gain) / 8 and np.mean(np.asarray(gain) > 0) > 0.9
    norms = np.linalg.norm(np.asarray(led.params.network["layer0"]["weight"]), axis=2)
    np.testing.assert_allclose(norms, 1.0, rtol=1e-9)
    np.testing.assert_allclose(led.log_density[0], jax.vmap(task.log_density)(rows(led)), rtol=1e-9)


@pytest.mark.slow
def test_flows_that_learn_pulls_are_guided_too():
    """At strength 0 the velocity is that of the pull, bit by bit; beyond it, more by w ∇ log L at the target."""
    flow = tiny.shaken(tiny.untrained(tiny.METHOD))
    time, z = jnp.asarray(0.3), flow.source.sample(KEY)
    known = flow.objective.velocity(flow.model)(time, z)
    still, led = (guided(flow, flow.posterior, strength, num_products=0).flow.model(time, z) for strength in (0.0, 0.2))
    np.testing.assert_array_equal(still, known)
    at = flow.objective.path.coefficients(time)
    ahead = (at.a * known - at.a_rate * z) / (np.pi / 2)  # a ḃ − b ȧ of the trigonometric path
    gradient = jax.grad(lambda z: flow.posterior.log_likelihood(flow.source.position(z)))(ahead)
    np.testing.assert_allclose(led, known + 0.2 * at.a * np.pi / 2 * gradient, rtol=1e-9)
    drawn = guided(flow, flow.posterior, 0.0).sample(KEY, 3)
    assert drawn.log_proposal is not None
    np.testing.assert_allclose(drawn.log_proposal, np.asarray(flow.sample(KEY, 3).log_proposal), rtol=1e-9)


def test_where_the_likelihood_bends_more_than_it_seems_steps_end_where_it_is_highest():
    """A network that is sure of the wrong class, with one weight w: log L = −log(1 + e^{−w}) at w = −30, H nearly 0.

    G is a whole gradient, 1, and a step of s r² G leads far beyond. α lets it end where the slope of the line through
    both ends of s log L − (w + 30)² / 2r² is zero; it is 1 where no step goes too far.
    """
    model = ws.Model(ws.networks.MLP(hidden=(), bias=False), ws.likelihoods.Bernoulli(), ws.priors.Normal(1.0))
    sure = model.condition(ws.Batch(np.ones((1, 1)), np.ones(1, int)))
    slope = lambda w: 1 / (1 + np.exp(w))
    source = WhitenedSource.of(sure)
    for time, strength in ((0.1, 100.0), (0.1, 10.0), (0.9, 100.0)):
        still = lambda time, z: (-30 - z) / (1 - time)  # leads to w = −30 from anywhere
        field = GuidanceField(still, Objective(Straight()), source, sure, strength, 4)
        variance = (1 - time) ** 2 / ((1 - time) ** 2 + time**2)
        step = strength * variance * slope(-30.0)
        rise, end = strength * slope(-30.0), strength * slope(-30.0 + step) - step / variance
        share = rise / (rise - min(end, 0))
        z = jnp.asarray([0.3])
        led = Straight().leads_to(jnp.asarray(time), z, field(time, z))
        np.testing.assert_allclose(led, -30 + share * step, rtol=1e-8)
        assert (share < 0.6) == (step > 40)


def test_what_cannot_be_guided_is_named(tmp_path):
    flow = normal(Straight(), np.zeros(3), np.eye(3))
    with pytest.raises(InputError, match=r"must have the flow's shapes \(\(3, 1\),\), got \(\(2,\)"):
        guided(flow, posterior())
    with pytest.raises(TypeError, match="must be a Flow or a PopulationFlow, got MAP"):
        guided(ws.MAP(), posterior())
    with pytest.raises(InputError, match="`strength` of guided must be finite"):
        guided(flow, problem().posterior, np.nan)
    with pytest.raises(InputError, match="`num_products` of guided"):
        guided(flow, problem().posterior, num_products=-1)
    with pytest.raises(InputError, match="got Guided"):
        guided(flow, problem().posterior).save(tmp_path)
