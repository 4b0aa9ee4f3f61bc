"""log p(y | x, D) of mixtures, against scipy."""

import numpy as np
from scipy.special import log_softmax, logsumexp
from scipy.stats import norm

import weightscape as ws


def test_a_gaussian_mixture(table_draws, points):
    rng = np.random.default_rng(0)
    outputs, scales, weights = rng.normal(size=(5, 8, 1)), np.exp(rng.normal(size=5)), rng.dirichlet(np.ones(5))
    y = rng.normal(scale=5, size=8)
    draws = table_draws(
        outputs,
        ws.likelihoods.Gaussian(scale=ws.priors.Gamma(0.5, 1.0)),
        own={"scale": scales},
        log_weights=np.log(weights),
    )
    each = norm.logpdf(y[None], outputs[..., 0], scales[:, None])
    exact = logsumexp(each, b=weights[:, None], axis=0)
    np.testing.assert_allclose(ws.predict(draws, points(8)).log_density(y), exact, rtol=1e-5, atol=1e-5)


def test_entries_of_a_vector_multiply_within_a_component(table_draws, points):
    outputs = np.array([[[0.0, 0.0]], [[3.0, 3.0]]])
    predictive = ws.predict(table_draws(outputs, ws.likelihoods.Gaussian(scale=0.5), y=[[0.0, 0.0]]), points(1))
    crossed = [[0.0, 3.0]]  # likely entry by entry, impossible together
    exact = logsumexp(norm.logpdf(crossed, outputs[:, 0], 0.5).sum(axis=1) - np.log(2))
    np.testing.assert_allclose(predictive.log_density(crossed), [exact], rtol=1e-6)


def test_the_scaling_enters_by_its_jacobian(table_draws, points):
    rng = np.random.default_rng(1)
    outputs, y = rng.normal(size=(4, 5, 2)), rng.normal(50, 30, size=(5, 2))
    shift, scale = np.array([40.0, 60.0]), np.array([30.0, 0.5])
    scaling = ws.data.Scaling(0.0, 1.0, shift, scale)
    draws = table_draws(outputs, ws.likelihoods.Gaussian(scale=0.5), y=[[0.0, 0.0]], scaling=scaling)
    each = norm.logpdf(y[None], outputs * scale + shift, 0.5 * scale).sum(axis=2)
    exact = logsumexp(each, axis=0) - np.log(4)
    np.testing.assert_allclose(ws.predict(draws, points(5)).log_density(y), exact, rtol=1e-4)


def test_labels_far_beyond_the_smallest_float(table_draws, points):
    logits = np.array([[[0.0, 200.0]], [[0.0, 150.0]]])
    predictive = ws.predict(table_draws(logits, ws.likelihoods.Categorical(num_classes=2), y=[0]), points(1))
    exact = logsumexp(log_softmax(logits[:, 0], axis=1)[:, 0]) - np.log(2)
    np.testing.assert_allclose(predictive.log_density([0]), [exact], rtol=1e-6)
