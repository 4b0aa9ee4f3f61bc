"""Weights of noisy paths: exact where the likelihood is a normal, and unbiased for any pull."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from tests.flow import linear_flows
from tests.flow.linear_flows import SCALE, known_draws, problem, weights_of

from weightscape.core.checks import InputError, InputTypeError
from weightscape.flow import (
    Diffusion,
    DiffusionTransport,
    FlowMatching,
    OfPull,
    OfVelocity,
    Straight,
    Trigonometric,
    annealed,
    weighted,
)
from weightscape.flow.objective import Objective

PATHS = [Straight(), Trigonometric()]
pytestmark = pytest.mark.usefixtures("x64")


class NormalPull(eqx.Module):
    """G(t, x) = E[c − P x₁ | x_t = x] where the likelihood is exp(c·x − xᵀ P x / 2); `share` of it is told.

    With x_t brought to variance one the source says x₁ ~ N(b x, a²), so E[c − P x₁ | x] = (1 + a² P)⁻¹ (c − b P x).
    """

    path: object
    precision: Array
    slope: Array
    told: Array
    share: float = 1.0

    def __call__(self, time, x):
        at = self.path.coefficients(time)
        size = jnp.sqrt(at.a**2 + at.b**2)
        a2, b = (at.a / size) ** 2, at.b / size
        force = self.slope - b * self.precision @ (x / size)
        return self.share * jnp.linalg.solve(jnp.eye(len(x)) + a2 * self.precision, force)

    def curvature(self, time):
        return self.told * jnp.ones_like(time)


def likelihood():
    """P and c of the linear regression's likelihood, over z = θ / SCALE."""
    known = problem()
    inverse = np.linalg.inv(known.covariance) * SCALE**2
    return inverse - np.eye(len(known.mean)), inverse @ (known.mean / SCALE)


def diffusion(path=Trigonometric(), *, num_steps=16, share=1.0, damping=1.0):  # noqa: B008
    precision, slope = (jnp.asarray(each) for each in likelihood())
    model = NormalPull(path, precision, slope, jnp.diag(precision), share)
    flow = linear_flows.flow(problem().mean, problem().covariance, model=model, objective=Objective(path, OfPull()))
    return Diffusion(flow, num_steps, damping=damping)


def log_weights(draws):
    return np.ravel(draws.log_density) - np.ravel(draws.log_proposal)


@pytest.mark.parametrize("num_steps", [1, 5])
@pytest.mark.parametrize("path", PATHS, ids=lambda path: type(path).__name__)
def test_all_weights_are_the_evidence_where_the_likelihood_is_normal_in_each_weight(path, num_steps):
    """Precisions 0.5, 3 and 40, each weight by itself, in one step as in five."""
    precision, slope = np.array([0.5, 3.0, 40.0]), np.array([0.3, -2.0, 8.0])
    model = NormalPull(path, jnp.diag(jnp.asarray(precision)), jnp.asarray(slope), jnp.asarray(precision))
    flow = linear_flows.flow(problem().mean, problem().covariance, model=model, objective=Objective(path, OfPull()))
    made = Diffusion(flow, num_steps, damping=1.0)
    keys = jax.random.split(jax.random.key(0), 8)
    positions, log_q = jax.vmap(made.sample_with_density)(keys)
    z = np.asarray(jax.vmap(flow.source.vector)(positions))
    log_target = -0.5 * np.sum((1 + precision) * z**2, -1) + z @ slope - 1.5 * np.log(2 * np.pi)
    truth = 0.5 * np.sum(slope**2 / (1 + precision) - np.log(1 + precision))
    np.testing.assert_allclose(log_target - log_q - flow.source.log_volume, truth, atol=1e-10)
    back = jax.vmap(made.log_density)(positions, keys)
    np.testing.assert_allclose(log_target - back - flow.source.log_volume, truth, atol=1e-10)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: type(path).__name__)
@pytest.mark.parametrize(("share", "damping"), [(1.0, 1.0), (0.6, 0.5)])
def test_weighted_draws_of_any_pull_have_the_moments_and_the_evidence_of_the_posterior(path, share, damping):
    """A pull that is right, and one that is much too weak; both with correlated weights and eight steps."""
    made = diffusion(path, num_steps=8, share=share, damping=damping)
    draws = made.sample(jax.random.key(1), 20_000)
    found = made.evidence(jax.random.key(1), 20_000)
    assert abs(found.value - problem().log_evidence) < 5 * found.standard_error
    assert found.standard_error < 0.05
    normed = np.exp(log_weights(draws) - log_weights(draws).max())
    normed /= normed.sum()
    theta = weights_of(draws).reshape(-1, 3)
    centred = theta - problem().mean
    errors = lambda values: np.sqrt(normed**2 @ (values - normed @ values) ** 2)
    assert np.all(np.abs(normed @ centred) < 5.5 * errors(centred))
    products = (centred[:, :, None] * centred[:, None, :]).reshape(-1, 9)
    assert np.all(np.abs(normed @ products - problem().covariance.ravel()) < 5.5 * errors(products))
    assert weighted(draws).facts["efficiency"] == pytest.approx(found.efficiency)


def test_densities_of_paths_backwards_are_unbiased_for_that_of_the_end():
    """E_B[F / B] is q(x); with the exact pull in many steps q is the posterior's density, up to 1/K."""
    made, draws = diffusion(num_steps=400), known_draws((1, 4))
    positions = jax.tree.map(lambda leaf: leaf[0], draws.positions())
    keys = jax.random.split(jax.random.key(3), 500)
    paths = jax.jit(jax.vmap(lambda key: jax.vmap(lambda x: made.log_density(x, key))(positions)))(keys)
    ratio = np.exp(np.asarray(paths) - (draws.log_density[0] - problem().log_evidence))
    error = ratio.std(0) / len(keys) ** 0.5
    assert np.all(error < 0.05)
    assert np.all(np.abs(ratio.mean(0) - 1) < 5 * error + 8 / 400)


def test_j_of_paths_falls_with_the_number_of_steps_as_one_over_it():
    gaps = [diffusion(num_steps=n).gap(jax.random.key(4), known_draws((4, 2000)), num_draws=8000) for n in (16, 64)]
    slack = 5 * np.hypot(gaps[0].standard_error, 4 * gaps[1].standard_error)
    assert gaps[1].value > 4 * gaps[1].standard_error
    assert abs(gaps[0].value / (4 * gaps[1].value) - 1) < 0.35 + slack / (4 * gaps[1].value)


def test_annealing_over_the_noise_of_paths_gives_the_evidence():
    made = diffusion(num_steps=4, share=0.8)
    result = annealed(jax.random.key(5), problem().posterior, DiffusionTransport(made), num_particles=1024)
    assert result.is_trusted
    assert abs(result.log_evidence.value - problem().log_evidence) < 5 * result.log_evidence.standard_error
    assert result.log_evidence.standard_error < 0.15


def test_noise_that_is_pushed_is_a_draw():
    made = diffusion(num_steps=4)
    key = jax.random.key(6)
    noise = jnp.concatenate([jax.random.normal(jax.random.fold_in(key, k), (3,)) for k in range(4)])
    pushed, drawn = made.push(noise), made.sample_with_density(key)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), pushed, drawn)


def test_what_a_diffusion_cannot_do_is_named(tmp_path):
    flow = diffusion().flow
    velocity = dataclasses.replace(flow, objective=Objective(Trigonometric(), OfVelocity()))
    with pytest.raises(InputTypeError, match="A Diffusion must have pulls, got OfVelocity"):
        Diffusion(velocity)
    with pytest.raises(InputError, match="`num_steps` of Diffusion must be at least 1"):
        Diffusion(flow, 0)
    with pytest.raises(InputError, match="Use `diffusion.flow.save"):
        diffusion().save(tmp_path)
    with pytest.raises(InputError, match="`gap` must know the data"):
        Diffusion(dataclasses.replace(flow, posterior=None)).gap(jax.random.key(0), known_draws((1, 4)))
    assert isinstance(flow.method, FlowMatching)


def test_weights_of_forgotten_draws_average_to_one_over_the_evidence():
    """E_B[1/w] = 1/p(D) over paths that end in draws of the posterior, for a pull that is too weak."""
    made, draws = diffusion(num_steps=8, share=0.8, damping=0.5), known_draws((1, 20_000))
    ratio = np.exp(problem().log_evidence - made.log_weights(draws))
    assert abs(ratio.mean() - 1) < 5 * ratio.std() / ratio.size**0.5 < 0.2
