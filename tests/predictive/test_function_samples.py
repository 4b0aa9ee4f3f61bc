"""Functions of the linearised network: their moments, across points as well, and any likelihood on top."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import weightscape as ws
from weightscape.predictive import FunctionSamples, function_gaussian, predict_linearised
from weightscape.predictive.links.samples import LinearisedOutputs
from weightscape.predictive.outputs import Held

NUM_SAMPLES = 20_000


def outputs_of(predictive):
    """The functions of all samples at all points, without padding."""
    chunks = [
        np.asarray(chunk.outputs)[:, : chunk.points.stop - chunk.points.start]
        for chunk in predictive.mixture.outputs.chunks()
    ]
    return np.concatenate(chunks, axis=1)[: predictive.mixture.num_draws]


def assert_normal_moments(samples, mean, covariance):
    """Mean and covariance of (sample, number) within 5.5 Monte-Carlo errors of a normal's, entry by entry."""
    std = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((samples.mean(0) - mean) / std, 0, atol=5.5 / np.sqrt(len(samples)))
    correlations = covariance / np.outer(std, std)
    errors = np.sqrt((1 + correlations**2) / len(samples))
    came = np.cov(samples.T) / np.outer(std, std)
    assert np.max(np.abs(came - correlations) / errors) < 5.5


def test_functions_have_the_joint_law_across_points(table_gaussian, points):
    rng = np.random.default_rng(0)
    root = np.tril(rng.normal(size=(6, 6)))
    mean, covariance = rng.normal(size=(3, 2)), root @ root.T + 0.1 * np.eye(6)
    approximation = table_gaussian(mean, covariance, ws.likelihoods.Gaussian(0.5), np.zeros((3, 2)))
    predictive = predict_linearised(approximation, points(3), link=FunctionSamples(jax.random.key(0), NUM_SAMPLES))
    assert_normal_moments(outputs_of(predictive).reshape(-1, 6), mean.ravel(), covariance)
    # One function serves all points of a sample; the noise of each number is its own.
    samples = np.asarray(predictive.sample(jax.random.key(1), NUM_SAMPLES)).reshape(-1, 6)
    functions = outputs_of(predictive).reshape(-1, 6)
    assert_normal_moments(samples, functions.mean(0), np.cov(functions.T) + 0.25 * np.eye(6))


def test_functions_of_a_network_have_the_moments_of_its_gaussian(gaussian_over):
    rng = np.random.default_rng(1)
    x, y = rng.normal(5, 2, size=(4, 2)), rng.normal(size=(4, 2))
    model = ws.Model(ws.networks.MLP(hidden=(5,)), ws.likelihoods.Gaussian(0.5), ws.priors.Normal())
    approximation = gaussian_over(model.condition(ws.Batch(x, y, ws.data.Scaling.fit(x, y, "regression"))))
    function, link = function_gaussian(approximation, x), FunctionSamples(jax.random.key(2), NUM_SAMPLES)
    predictive, exact = predict_linearised(approximation, x, link=link), predict_linearised(approximation, x)
    functions = outputs_of(predictive)
    for n in range(4):
        assert_normal_moments(functions[:, n], np.asarray(function.mean[n]), np.asarray(function.covariance[n], float))
    errors = 5.5 * np.asarray(exact.epistemic_std) / np.sqrt(NUM_SAMPLES)
    np.testing.assert_array_less(np.abs(predictive.mean - exact.mean), errors)
    np.testing.assert_allclose(predictive.epistemic_std, exact.epistemic_std, rtol=5.5 / np.sqrt(2 * NUM_SAMPLES))
    np.testing.assert_allclose(predictive.aleatoric_std, exact.aleatoric_std, rtol=1e-5)


def test_counts_have_the_mean_of_a_log_normal_rate(table_gaussian, points):
    mean, variance = np.array([[0.5], [1.2]]), np.array([0.3, 0.1])
    approximation = table_gaussian(mean, np.diag(variance), ws.likelihoods.Poisson(), [1.0, 2.0])
    predictive = predict_linearised(approximation, points(2), link=FunctionSamples(jax.random.key(3), NUM_SAMPLES))
    rate = np.exp(mean[:, 0] + variance / 2)
    relative = np.sqrt(np.expm1(variance) / NUM_SAMPLES)  # of an average of log-normal numbers
    np.testing.assert_array_less(np.abs(predictive.mean / rate - 1), 5 * relative)
    np.testing.assert_array_less(np.abs(predictive.aleatoric_std**2 / rate - 1), 5 * relative)


@pytest.mark.parametrize(
    "likelihood",
    [
        ws.likelihoods.StudentT(scale=ws.priors.Gamma(2.0, 4.0)),
        ws.likelihoods.HeteroscedasticGaussian(),
        ws.likelihoods.Gaussian(ws.priors.Gamma(2.0, 4.0)),
        ws.likelihoods.Poisson(),
    ],
)
def test_all_scores_of_numbers(likelihood, gaussian_over):
    x, y = np.random.default_rng(4).normal(size=(9, 2)), np.arange(9.0)
    posterior = ws.Model(ws.networks.MLP(hidden=()), likelihood, ws.priors.Normal()).condition(ws.Batch(x, y))
    approximation = gaussian_over(posterior, spread=0.1)
    predictive = predict_linearised(approximation, x, link=FunctionSamples(jax.random.key(5), 33))
    assert set(ws.scores(predictive, y)) == {"rmse", "nll", "crps", "coverage_90"}
    assert all(np.isfinite(value) for value in ws.scores(predictive, y).values())
    parts = np.asarray(predictive.aleatoric_std) ** 2 + np.asarray(predictive.epistemic_std) ** 2
    np.testing.assert_allclose(predictive.variance, parts, rtol=1e-5)
    own = posterior.model.place(approximation.mean).parameters.likelihood
    variances = [likelihood.variance(jnp.asarray(one), own) for one in outputs_of(predictive)]
    np.testing.assert_allclose(predictive.aleatoric_std**2, np.mean(variances, axis=0)[:, 0], rtol=1e-5)


def test_padding_has_no_weight_and_chunks_do_not_matter(gaussian_over):
    x, y = np.random.default_rng(6).normal(size=(21, 2)), np.arange(21) % 3
    model = ws.Model(ws.networks.MLP(hidden=(5,)), ws.likelihoods.Categorical(num_classes=3), ws.priors.Normal())
    approximation = gaussian_over(model.condition(ws.Batch(x, y)))
    link = FunctionSamples(jax.random.key(7), 37)
    held, recomputed = (
        predict_linearised(approximation, x, link=link),
        predict_linearised(approximation, x, link=link, memory=2500),
    )
    assert isinstance(held.mixture.outputs, Held)
    assert isinstance(recomputed.mixture.outputs, LinearisedOutputs)
    assert recomputed.mixture.outputs.plan.chunk_size < held.mixture.outputs.plan.chunk_size
    each = jax.nn.softmax(outputs_of(held), axis=2)
    assert len(each) == 37 < held.mixture.outputs.plan.padded_draws
    np.testing.assert_allclose(held.probabilities, each.mean(0), rtol=1e-5)
    for ask in ("probabilities", "entropy", "expected_entropy"):
        np.testing.assert_allclose(getattr(held, ask), getattr(recomputed, ask), rtol=2e-5)
