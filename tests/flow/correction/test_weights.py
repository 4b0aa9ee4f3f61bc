"""Weighted draws: moments and predictions are the posterior's, whatever density they came from."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.flow.correction.problems import gaussian_near, weights_of
from tests.known import linear

import weightscape as ws
from weightscape.core import InputError
from weightscape.draws import draw_weights, running_lppd
from weightscape.flow.correction import weighted

pytestmark = pytest.mark.usefixtures("x64")


def weighted_error(weights, values):
    """The standard error of Σ w f with normalised weights, by the delta method."""
    centred = values - np.tensordot(weights, values, 1)[None]
    return np.sqrt(np.tensordot(weights**2, centred**2, 1))


@pytest.fixture(scope="module")
def corrected():
    with jax.enable_x64(True):
        return weighted(gaussian_near(linear(), shift=0.5, stretch=1.6).sample(jax.random.key(0), 8000))


def test_moments_are_those_of_the_posterior(corrected):
    problem, weights, values = linear(), draw_weights(corrected)[0], weights_of(corrected)[0]
    error = weighted_error(weights, values)
    assert np.all(np.abs(weights @ values - problem.mean) < 5 * error)
    centred = values - problem.mean
    products = centred[:, :, None] * centred[:, None, :]
    covariance_error = weighted_error(weights, products)
    assert np.all(np.abs(np.tensordot(weights, products, 1) - problem.covariance) < 5 * covariance_error)
    # Both errors are small beside what is wrong about q: half a deviation, and 1.6² − 1 of the covariance.
    assert np.all(error < 0.05 * np.sqrt(np.diag(problem.covariance)))
    assert np.all(np.diag(covariance_error) < 0.1 * np.diag(problem.covariance))


def test_predictions_are_those_of_the_posterior(corrected):
    problem = linear()
    x = problem.x[:5] * 3
    predictive = ws.predict(corrected, x)
    weights, means = draw_weights(corrected)[0], weights_of(corrected)[0] @ x.T
    assert np.all(np.abs(np.asarray(predictive.mean) - x @ problem.mean) < 5 * weighted_error(weights, means))
    variance = np.einsum("ni,ij,nj->n", x, problem.covariance, x)
    error = weighted_error(weights, (means - x @ problem.mean) ** 2)
    assert np.all(np.abs(np.asarray(predictive.epistemic_std) ** 2 - variance) < 5 * error + 1e-12)
    upper = np.asarray(predictive.quantile(0.9))
    exact = x @ problem.mean + 1.2815515655446004 * np.sqrt(variance + problem.noise**2)
    # A quantile is off by less than the mean and 1.28 standard deviations are, as both move it linearly.
    assert np.all(np.abs(upper - exact) < 5 * weighted_error(weights, means) + 5 * error / np.sqrt(variance))


def test_facts_tell_the_efficiency(corrected):
    again = ws.inference.importance_evidence(np.asarray(corrected.log_weights)[0])
    assert corrected.facts["efficiency"] == again.efficiency and corrected.facts["pareto_k"] == again.pareto_k
    assert 0.1 < again.efficiency < 0.9
    assert abs(again.value - linear().log_evidence) < 5 * again.standard_error


def classifier():
    x = np.random.default_rng(0).normal(size=(30, 2))
    model = ws.Model(ws.networks.MLP(hidden=()), ws.likelihoods.Categorical(num_classes=3), ws.priors.Normal(1.0))
    posterior = model.condition(ws.Batch(x, (x[:, 0] > 0).astype(int) + (x[:, 1] > 0)))
    start = posterior.start_position(jax.random.key(0))
    size = sum(leaf.size for leaf in jax.tree.leaves(start))
    wide = ws.inference.Full.of_covariance(jnp.eye(size))
    return ws.inference.Gaussian.over(posterior, start, wide), x


SUMMARIES = {
    "regression": ("mean", "std", "epistemic_std", "aleatoric_std"),
    "classification": ("probabilities", "entropy", "expected_entropy", "mutual_information"),
}


@pytest.mark.parametrize("task", SUMMARIES)
def test_equal_weights_are_none(task):
    """Every summary and every score, to rounding; a weight common to all draws is no weight."""
    gaussian, x = (gaussian_near(linear()), linear().x) if task == "regression" else classifier()
    y = linear().y if task == "regression" else np.arange(30) % 3
    draws = gaussian.sample(jax.random.key(1), 64)
    even = weighted(dataclasses.replace(draws, log_proposal=np.asarray(draws.log_density) - 7.0))
    plain, same = ws.predict(draws, x), ws.predict(even, x)
    for name in SUMMARIES[task]:
        np.testing.assert_allclose(getattr(same, name), getattr(plain, name), rtol=1e-12, atol=1e-14)
    ours, theirs = ws.scores(same, y), ws.scores(plain, y)
    assert ours.keys() == theirs.keys()
    np.testing.assert_allclose(list(ours.values()), list(theirs.values()), rtol=1e-9)
    batch = ws.Batch(x, y)
    np.testing.assert_allclose(running_lppd(even, batch).pooled, running_lppd(draws, batch).pooled, rtol=1e-12)
    assert even.facts["efficiency"] == pytest.approx(1) and even.facts["pareto_k"] is None


@pytest.mark.parametrize("task", SUMMARIES)
def test_weights_count_as_copies(task):
    """A draw with weight k is k draws: of every summary, score, distance and of the LPPD."""
    gaussian, x = (gaussian_near(linear()), linear().x) if task == "regression" else classifier()
    y = linear().y if task == "regression" else np.arange(30) % 3
    draws = gaussian.sample(jax.random.key(2), 64)
    counts = 1 + np.arange(64) % 3
    heavy = dataclasses.replace(draws, log_weights=np.log(counts)[None])
    copied = draws[:, np.repeat(np.arange(64), counts)]
    one, other = ws.predict(heavy, x), ws.predict(copied, x)
    for name in SUMMARIES[task]:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(one.log_density(y), other.log_density(y), rtol=1e-12)
    np.testing.assert_allclose(list(ws.scores(one, y).values()), list(ws.scores(other, y).values()), rtol=1e-9)
    batch = ws.Batch(x, y)
    np.testing.assert_allclose(
        running_lppd(heavy, batch).pooled[-1], running_lppd(copied, batch).pooled[-1], rtol=1e-12
    )
    if task == "regression":
        for level in (0.1, 0.9):
            np.testing.assert_allclose(one.quantile(level), other.quantile(level), rtol=1e-9)
    else:
        plain = ws.predict(draws, x)
        assert ws.total_variation(one, other) < 1e-12 < ws.total_variation(one, plain)
        assert ws.agreement(one, other) == 1


def test_poor_draws_are_refused():
    draws = gaussian_near(linear(), shift=4.0, stretch=0.7).sample(jax.random.key(3), 2000)
    with pytest.raises(InputError, match="efficiency of .* draws count. Train the approximation"):
        weighted(draws)
    with pytest.raises(InputError, match="At least 50 .* Make more draws"):
        weighted(draws[:, :40], least_efficiency=1e-6)


def test_unknown_densities_are_refused():
    draws = gaussian_near(linear()).sample(jax.random.key(3), 100)
    with pytest.raises(InputError, match="log_proposal"):
        weighted(dataclasses.replace(draws, log_proposal=None))
    with pytest.raises(InputError, match="NaN in 100 of them"):
        weighted(dataclasses.replace(draws, log_density=np.full((1, 100), np.nan)))
