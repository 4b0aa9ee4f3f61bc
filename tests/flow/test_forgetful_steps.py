"""Steps that forget, between two Gaussians: the moments of their ends, and what is left of an error, in closed form."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.flow import gaussians, tiny, von_mises
from tests.flow.test_transfer import flow_over, posterior

import weightscape as ws
from weightscape.core import InputError, decode, encode
from weightscape.flow import (
    Adaptive,
    Aligned,
    Equivariant,
    Euclidean,
    FixedSteps,
    ForgetfulSteps,
    Geometric,
    Normalized,
    Straight,
    Trigonometric,
    carry,
)
from weightscape.flow.orbits import orbits
from weightscape.flow.paths import Coefficients
from weightscape.symmetry import of_function

pytestmark = pytest.mark.usefixtures("x64")
PATHS = [Straight(), Trigonometric()]
KEY = jax.random.key(0)
NUM_ENDS = 20_000


def of_each_step(path, steps):
    """Coefficients at t and at u, t, and κ, for each step from t to u."""
    s = np.arange(int(steps.num_steps) + 1) / int(steps.num_steps)
    times = s + float(steps.bend) * s * (1 - s)
    rows = np.asarray(jax.vmap(path.coefficients)(jnp.asarray(times)))
    at = [Coefficients(*row) for row in rows.T]
    for now, then, time in zip(at[:-1], at[1:], times[:-1], strict=True):
        yield now, then, time, now.b * then.a / (then.b * now.a)


def of_origin_and_goal(now, then, kept, x, velocity):
    """The part of x_u that is not noise: linear in x and the velocity there."""
    size = now.a * now.b_rate - now.b * now.a_rate
    origin, goal = now.b_rate * x - now.b * velocity, now.a * velocity - now.a_rate * x
    return (then.a * kept * origin + then.b * goal) / size


def known_moments(path, steps):
    """Mean and covariance of the ends, step by step, from v = V (x − b m) + ḃ m."""
    mean, covariance, identity = np.zeros(3), np.eye(3), np.eye(3)
    for now, then, time, ratio in of_each_step(path, steps):
        kept = ratio ** (float(steps.forgetting) * time**2)
        spread = now.a**2 * identity + now.b**2 * gaussians.COVARIANCE
        slope = (now.a_rate * now.a * identity + now.b_rate * now.b * gaussians.COVARIANCE) @ np.linalg.inv(spread)
        velocity = slope @ (mean - now.b * gaussians.MEAN) + now.b_rate * gaussians.MEAN
        matrix = of_origin_and_goal(now, then, kept, identity, slope)
        mean = of_origin_and_goal(now, then, kept, mean, velocity)
        covariance = matrix @ covariance @ matrix.T + then.a**2 * (1 - kept**2) * identity
    return mean, covariance


def ends(path, velocity, steps, num_ends=NUM_ENDS):
    """The ends of ways from a standard normal."""

    def one(steps, key):
        start = jax.random.normal(key, (3,))
        return steps.draw(jax.random.fold_in(key, 1), path, velocity, start)

    return eqx.filter_jit(jax.vmap(one, in_axes=(None, 0)))(steps, jax.random.split(KEY, num_ends))


@pytest.mark.parametrize("forgetting", [0.0, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("path", PATHS, ids=lambda path: type(path).__name__)
def test_ends_have_the_known_mean_and_covariance(path, forgetting):
    """Of twelve steps, within five deviations: √(S_ii / n) of a mean, √((S_ii S_jj + S_ij²) / n) of a covariance."""
    steps = ForgetfulSteps(12, forgetting=forgetting)
    found = np.asarray(ends(path, gaussians.velocity(path), steps))
    mean, covariance = known_moments(path, steps)
    spread = np.diag(covariance)
    assert np.all(np.abs(found.mean(0) - mean) < 5 * np.sqrt(spread / NUM_ENDS))
    error = np.sqrt((np.outer(spread, spread) + covariance**2) / NUM_ENDS)
    assert np.all(np.abs(np.cov(found.T) - covariance) < 5 * error)


@pytest.mark.parametrize("forgetting", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("path", PATHS, ids=lambda path: type(path).__name__)
def test_shorter_steps_lead_to_the_flows_own_distribution(path, forgetting):
    """Whatever is forgotten, mean and covariance become those of the target, with an error of first order."""
    errors = []
    for count in (100, 200):
        mean, covariance = known_moments(path, ForgetfulSteps(count, forgetting=forgetting))
        np.testing.assert_allclose(mean, gaussians.MEAN, atol=1e-9)
        errors.append(np.linalg.norm(covariance - gaussians.COVARIANCE))
    assert errors[1] < 0.03 * np.linalg.norm(gaussians.COVARIANCE) * max(1.0, forgetting)
    assert abs(np.log2(errors[0] / errors[1]) - 1) < 0.25


@pytest.mark.parametrize("path", PATHS, ids=lambda path: type(path).__name__)
def test_where_nothing_is_forgotten_the_ends_are_those_of_the_flow(path):
    velocity, start = gaussians.velocity(path), jnp.asarray([0.3, -1.0, 2.0])
    truth = carry(Adaptive(1e-10, 1e-10), velocity, start)
    steps = [ForgetfulSteps(count, forgetting=0.0) for count in (100, 200)]
    errors = [float(jnp.linalg.norm(each.draw(KEY, path, velocity, start) - truth)) for each in steps]
    assert errors[1] < 0.05 and abs(np.log2(errors[0] / errors[1]) - 1) < 0.25


@pytest.mark.parametrize("path", PATHS, ids=lambda path: type(path).__name__)
def test_errors_on_the_way_are_forgotten(path):
    """A kick to the velocity before half time, for a target N(0, s² 1): with the same noise the ends differ by e only.

    e grows by A in each step and by what the kick adds, all of it known; without forgetting much of it arrives.
    """
    scale, kick = 0.1, 0.5
    calm = gaussians.velocity(path, np.zeros(3), scale**2 * np.eye(3))
    kicked = lambda time, x: calm(time, x) + jnp.where(time < 0.5, kick, 0.0)
    left = {}
    for forgetting in (0.0, 1.0, 10.0):
        steps, error = ForgetfulSteps(40, forgetting=forgetting), 0.0
        for now, then, time, ratio in of_each_step(path, steps):
            slope = (now.a_rate * now.a + now.b_rate * now.b * scale**2) / (now.a**2 + now.b**2 * scale**2)
            pushed = slope * error + (kick if time < 0.5 else 0.0)
            error = of_origin_and_goal(now, then, ratio ** (forgetting * time**2), error, pushed)
        ours, theirs = (steps.draw(KEY, path, each, jnp.ones(3)) for each in (kicked, calm))
        np.testing.assert_allclose(ours - theirs, error, rtol=1e-8, atol=1e-14)
        left[forgetting] = abs(error)
    assert left[0.0] > 0.02 and left[1.0] < 0.5 * left[0.0] and left[10.0] < 0.02 * left[0.0]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: type(path).__name__)
def test_targets_are_held_to_their_reach_and_nothing_else_is_changed(path):
    """A velocity that leads to 3 x̂ in place of x̂ runs away without a reach; with one it ends within it.

    A reach that no target goes beyond changes no bit.
    """
    calm = gaussians.velocity(path, np.zeros(3), 0.01 * np.eye(3))

    def wild(time, x):
        at = path.coefficients(time)
        return calm(time, x) + 2 * (at.b_rate - at.b * at.a_rate / at.a) * path.leads_to(time, x, calm(time, x))

    reach, steps = jnp.asarray([0.3, 0.2, jnp.inf]), ForgetfulSteps(40, forgetting=30.0)
    start = jnp.asarray([1.0, -2.0, 0.5])
    free, held = steps.draw(KEY, path, wild, start), steps.draw(KEY, path, wild, start, reach)
    assert np.all(np.abs(free[:2]) > reach[:2]) and np.all(np.abs(held) <= (1 + 1e-12) * reach)
    np.testing.assert_array_equal(held[2], free[2])
    still = [steps.draw(KEY, path, calm, start, each) for each in (100 * jnp.ones(3), jnp.inf * jnp.ones(3))]
    for each in still:
        np.testing.assert_array_equal(each, steps.draw(KEY, path, calm, start))


def test_another_number_compiles_nothing():
    traces = []

    @eqx.filter_jit
    def end(steps):
        traces.append(steps)
        return steps.draw(KEY, Straight(), gaussians.velocity(Straight()), jnp.ones(3))

    for steps in (ForgetfulSteps(), ForgetfulSteps(5, forgetting=2.0), ForgetfulSteps(9, bend=0.0)):
        assert np.all(np.isfinite(end(steps)))
    assert len(traces) == 1


def euclidean():
    """A flow over networks of seven weights that has not been trained."""
    return flow_over(posterior(), Euclidean())


def test_a_flow_with_such_steps_keeps_them(tmp_path):
    """On disk, on other networks, and among settings; so is the reach of its weights, by orbit."""
    by_orbit = lambda flow: 0.1 + 0.1 * jnp.asarray(orbits(of_function(flow.posterior).without_scaling()))
    free = euclidean().with_solver(ForgetfulSteps(6, forgetting=3.0))
    flow = dataclasses.replace(free, reach=by_orbit(free))
    drawn, calm = flow.sample(KEY, 4), flow.with_solver(ForgetfulSteps(6, forgetting=0.0)).sample(KEY, 4)
    assert drawn.log_proposal is None and np.all(np.isfinite(drawn.log_density))
    assert not np.allclose(drawn.log_density, calm.log_density, rtol=1e-3)
    flow.save(tmp_path)
    loaded = ws.load_approximation(tmp_path, posterior())
    jax.tree.map(np.testing.assert_array_equal, loaded.sample(KEY, 4).params, drawn.params)
    assert not np.allclose(free.sample(KEY, 4).log_density, drawn.log_density, rtol=1e-3)
    moved = ws.flow.transfer(flow, posterior((5,)))
    assert float(moved.solver.forgetting) == 3.0
    np.testing.assert_array_equal(moved.reach, by_orbit(moved))
    np.testing.assert_array_equal(ws.flow.guided(flow, posterior(seed=7), 1.0).flow.reach, np.inf)
    assert decode(encode(flow.solver).tree, encode(flow.solver).arrays) == flow.solver


def test_what_has_noise_has_no_density_and_no_way():
    flow = euclidean().with_solver(ForgetfulSteps())
    with pytest.raises(InputError, match=r"A density must be asked of a flow without noise.*with_solver\(FixedSteps"):
        flow.log_densities(flow.with_solver(FixedSteps(3)).sample(KEY, 2))
    with pytest.raises(InputError, match="A way from one time to another must be asked of a flow without noise"):
        flow.path(KEY, 2, jnp.linspace(0.0, 1.0, 3))


def test_what_does_not_fit_is_named():
    unguided = {"architecture": Equivariant(tiny.SIZES, guided=False), "solver": ForgetfulSteps()}
    for geometry in (Normalized(), Geometric()):
        asked = f"must be Euclidean with Independent pairs, got {type(geometry).__name__} with Independent pairs"
        with pytest.raises(TypeError, match=asked):
            ws.PopulationMatching(geometry, **unguided)
        with pytest.raises(TypeError, match=asked):
            flow_over(von_mises.posterior(), geometry).with_solver(ForgetfulSteps())
    with pytest.raises(TypeError, match="got Euclidean with Aligned pairs"):
        ws.PopulationMatching(Euclidean(), coupling=Aligned(), **unguided)
    for bad, message in (
        ({"num_steps": 0}, "`num_steps` of ForgetfulSteps must be positive"),
        ({"forgetting": -1.0}, "`forgetting` of ForgetfulSteps must be finite and at least 0, got -1"),
        ({"forgetting": np.inf}, "must be finite and at least 0, got inf"),
        ({"forgetting": np.nan}, "`forgetting` of ForgetfulSteps must be finite and at least 0, got nan"),
        ({"bend": 1.0}, r"`bend` of ForgetfulSteps must lie in \[0, 1\)"),
    ):
        with pytest.raises(InputError, match=message):
            ForgetfulSteps(**bad)
    spheres = flow_over(von_mises.posterior(), Geometric())
    with pytest.raises(TypeError, match="The path of ForgetfulSteps must be flat, got GeodesicPath"):
        ForgetfulSteps().draw(KEY, spheres.objective.path, lambda time, x: x, jnp.ones(3))
