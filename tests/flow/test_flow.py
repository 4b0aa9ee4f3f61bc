"""A flow as a density: draws, log densities, evidence and J, where the flow is a normal and all are known."""

import dataclasses

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import sqrtm
from tests.flow import gaussians
from tests.flow.linear_flows import PATH, SCALE, flow, known_draws, problem, two_way_divergence, weights_of

import weightscape as ws
from weightscape.core import InputError
from weightscape.core.facts import Facts
from weightscape.draws import draw_weights
from weightscape.flow import FixedSteps, FlowTransport, Hutchinson, PriorSource

pytestmark = pytest.mark.usefixtures("x64")
NUM_DRAWS = 4000


def exact():
    return flow(problem().mean, problem().covariance)


WRONG_SHIFT = np.array([0.05, -0.1, 0.02])


def wrong():
    """A flow that is off in its mean, and wide in its covariance."""
    covariance = 1.5 * problem().covariance + np.diag([0.02, 0.0, 0.005])
    return problem().mean + WRONG_SHIFT, covariance


def test_draws_have_the_moments_and_the_density():
    draws = exact().sample(jax.random.key(0), NUM_DRAWS)
    values, covariance = weights_of(draws)[0], problem().covariance
    deviations = np.sqrt(np.diag(covariance))
    # The errors of a mean and of a covariance of normals.
    assert np.all(np.abs(values.mean(0) - problem().mean) < 5.5 * deviations / NUM_DRAWS**0.5)
    error = np.sqrt((np.outer(deviations, deviations) ** 2 + covariance**2) / NUM_DRAWS)
    assert np.all(np.abs(np.cov(values.T) - covariance) < 5.5 * error)
    known = gaussians.log_normal(values, problem().mean, covariance)
    np.testing.assert_allclose(draws.log_proposal[0], known, atol=1e-7)
    np.testing.assert_allclose(draws.log_density[0], known + problem().log_evidence, atol=1e-7)


def test_densities_forwards_and_backwards_agree():
    """In more batches than one: 1365 draws go at once."""
    made = flow(*wrong())
    draws = made.sample(jax.random.key(1), 1500)
    rows = jax.tree.map(lambda leaf: leaf.reshape(3, 500, *leaf.shape[2:]), draws.sampled())
    folded = ws.Draws(rows.params, rows.log_density, *made.header)
    assert made._batch_size(1500) < 1500
    backwards = made.log_densities(folded)
    assert backwards.shape == (3, 500)
    np.testing.assert_allclose(backwards.ravel(), draws.log_proposal[0], atol=1e-7)
    np.testing.assert_allclose(backwards, gaussians.log_normal(weights_of(folded), *wrong()), atol=1e-7)


def test_an_exact_flow_knows_the_evidence_and_has_no_gap():
    evidence = exact().evidence(jax.random.key(2), 100)
    assert abs(evidence.value - problem().log_evidence) < 1e-7
    assert evidence.standard_error < 1e-8 and evidence.efficiency > 1 - 1e-9
    gap = exact().gap(jax.random.key(3), known_draws((4, 30)), num_draws=100)
    assert abs(gap.value) < 1e-7 and gap.standard_error < 1e-7


def test_a_wrong_flow_is_corrected_and_measured():
    made = flow(*wrong())
    evidence = made.evidence(jax.random.key(4), NUM_DRAWS)
    assert abs(evidence.value - problem().log_evidence) < 5 * evidence.standard_error
    assert 0.001 < evidence.standard_error < 0.03 and evidence.is_trusted
    gap = made.gap(jax.random.key(5), known_draws((50, 80)), num_draws=NUM_DRAWS)
    known = two_way_divergence(problem().mean, problem().covariance, *wrong())
    # Fifty chains tell their own spread to 10%.
    assert abs(gap.value - known) < 6 * gap.standard_error
    assert gap.standard_error < 0.15 * known


def test_weights_give_the_moments_of_the_posterior():
    made = flow(*wrong())
    draws = made.sample(jax.random.key(6), NUM_DRAWS)
    np.testing.assert_array_equal(made.log_weights(draws), draws.log_density - draws.log_proposal)
    corrected = ws.flow.weighted(draws)
    weights, values = draw_weights(corrected)[0], weights_of(draws)[0]
    centred = values - problem().mean
    for found, known in ((values, problem().mean), (centred[:, :, None] * centred[:, None, :], problem().covariance)):
        mean = np.tensordot(weights, found, 1)
        error = np.sqrt(np.tensordot(weights**2, (found - mean) ** 2, 1))
        assert np.all(np.abs(mean - known) < 5.5 * error)
    unweighted = np.abs(values.mean(0) - problem().mean)
    assert np.max(unweighted / np.std(values, axis=0)) > 10 / NUM_DRAWS**0.5


def test_log_proposals_of_another_flow_are_not_believed():
    ours, other = flow(*wrong()), dataclasses.replace(exact(), facts=Facts(method="another"))
    draws = other.sample(jax.random.key(7), 20)
    known = gaussians.log_normal(weights_of(draws), *wrong())
    np.testing.assert_allclose(ours.log_weights(draws), draws.log_density - known, atol=1e-7)


def test_probes_are_unbiased_and_refused_where_their_noise_would_bias():
    made = flow(*wrong()).with_divergence(Hutchinson(2))
    draws = made.sample(jax.random.key(8), NUM_DRAWS)
    errors = draws.log_proposal[0] - gaussians.log_normal(weights_of(draws)[0], *wrong())
    assert abs(errors.mean()) < 5.5 * errors.std() / NUM_DRAWS**0.5
    assert 0.001 < errors.std() < 1.0
    for ask in (lambda: made.evidence(jax.random.key(0), 10), lambda: made.log_weights(draws)):
        with pytest.raises(InputError, match="must have an exact divergence, got Hutchinson.*with_divergence"):
            ask()


def test_points_go_where_the_formula_says():
    """x_t = b m + S_t^{1/2} z, as S_t and its derivative commute."""
    mean, covariance = wrong()
    made = flow(mean, covariance)
    z = np.array([0.3, -1.2, 2.0])
    position, log_density = made.push(jnp.asarray(z))
    there = mean + sqrtm(covariance).real @ z
    np.testing.assert_allclose(made.source.layout.flatten(position), there, atol=1e-8)
    np.testing.assert_allclose(log_density, gaussians.log_normal(there, mean, covariance), atol=1e-8)
    pushed = FlowTransport(made).push(jnp.asarray(z))
    np.testing.assert_allclose(pushed[1], log_density, atol=1e-12)
    assert FlowTransport(made).num_weights == made.num_weights == 3
    key, times = jax.random.key(9), jnp.asarray([0.0, 0.4, 1.0])
    along = jax.vmap(jax.vmap(made.source.vector))(made.path(key, 2, times))
    assert along.shape == (2, 3, 3)
    for row, each in enumerate(jax.random.split(key, 2)):
        start = np.asarray(made.source.sample(each))
        for i, time in enumerate(times):
            at = PATH.coefficients(time)
            spread = at.a**2 * np.eye(3) + at.b**2 * covariance / SCALE**2
            np.testing.assert_allclose(along[row, i], at.b * mean / SCALE + sqrtm(spread).real @ start, atol=1e-7)


def test_another_solver_changes_the_solution_alone():
    made = flow(*wrong())
    rough = made.with_solver(FixedSteps(3, diffrax.Euler()))
    z = jnp.asarray([0.3, -1.2, 2.0])
    here, there = (made.source.layout.flatten(each.push(z)[0]) for each in (made, rough))
    assert 0.01 < np.max(np.abs(here - there)) < 1.0
    np.testing.assert_allclose(made.source.layout.flatten(rough.with_solver(made.solver).push(z)[0]), here, atol=1e-12)
    assert rough.model is made.model


def test_what_cannot_be_is_named():
    made = exact()
    lost = dataclasses.replace(made, posterior=None)
    with pytest.raises(InputError, match="`gap` must know the data"):
        lost.gap(jax.random.key(0), known_draws((2, 3)))
    with pytest.raises(InputError, match="`evidence` must know the data"):
        lost.evidence(jax.random.key(0), 10)
    assert np.all(np.isnan(lost.sample(jax.random.key(0), 2).log_density))
    with pytest.raises(TypeError, match="must start from a standard normal, got PriorSource"):
        FlowTransport(dataclasses.replace(made, source=PriorSource.of(made.posterior)))
    with pytest.raises(InputError, match="has one"):
        _ = made.log_evidence
