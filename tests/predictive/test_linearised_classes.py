"""Probit and Laplace bridge: against their formulas, quadrature and Monte Carlo."""

import jax
import numpy as np
import pytest
from scipy import integrate, special, stats

import weightscape as ws
from weightscape.predictive import FunctionSamples, LaplaceBridge, Probit, predict_linearised

LINKS = [Probit(), LaplaceBridge(), FunctionSamples(jax.random.key(0), 64)]


def logits(num_points, num_classes, spread=1.0, seed=0):
    """Random means, and covariances that are neither diagonal nor of equal row sums."""
    rng = np.random.default_rng(seed)
    roots = spread * rng.normal(size=(num_points, num_classes, num_classes)) / np.sqrt(num_classes)
    return rng.normal(size=(num_points, num_classes)), roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(num_classes)


def concentrations(mean, covariance):
    """α of the bridge for centred logits, as the paper writes it."""
    num_classes, variance = mean.shape[1], np.diagonal(covariance, axis1=1, axis2=2)
    others = np.exp(-mean).sum(1, keepdims=True)
    return (1 - 2 / num_classes + np.exp(mean) / num_classes**2 * others) / variance


def centred(mean, covariance):
    projection = np.eye(mean.shape[1]) - 1 / mean.shape[1]
    return mean @ projection, projection @ covariance @ projection


def test_the_probit_of_two_classes_is_near_the_integral(x64, logits_gaussian, points):
    grid = [(m, s) for m in (-5.0, -2.0, -0.7, 0.0, 1.5, 4.0) for s in (0.1, 0.5, 1.0, 2.0, 4.0)]
    mean, std = np.array(grid).T
    approximation = logits_gaussian(mean[:, None], std[:, None, None] ** 2, ws.likelihoods.Bernoulli())
    one = np.asarray(predict_linearised(approximation, points(len(grid)), link="probit").probabilities)[:, 1]
    np.testing.assert_allclose(one, special.expit(mean / np.sqrt(1 + np.pi * std**2 / 8)), rtol=1e-12)
    smeared = lambda z, m, s: special.expit(m + s * z) * stats.norm.pdf(z)
    exact = [integrate.quad(smeared, -12, 12, args=pair, limit=200)[0] for pair in grid]
    assert np.max(np.abs(one - exact)) < 0.02
    assert np.max(np.abs(special.expit(mean) - exact)) > 0.15  # without moderation


def test_the_probit_of_many_classes_moderates_each_logit(x64, logits_gaussian, points):
    mean, covariance = logits(20, 3)
    approximation = logits_gaussian(mean, covariance, ws.likelihoods.Categorical(num_classes=3))
    predictive = predict_linearised(approximation, points(20))
    moderated = mean / np.sqrt(1 + np.pi / 8 * np.diagonal(covariance, axis1=1, axis2=2))
    wanted = special.softmax(moderated, axis=1)
    np.testing.assert_allclose(predictive.probabilities, wanted, rtol=1e-12)
    np.testing.assert_allclose(predictive.entropy, stats.entropy(wanted, axis=1), rtol=1e-12)
    labels = np.arange(20) % 3
    np.testing.assert_allclose(predictive.log_density(labels), np.log(wanted[np.arange(20), labels]), rtol=1e-12)


@pytest.mark.parametrize("quantity", ["expected_entropy", "mutual_information"])
def test_the_probit_does_not_split_its_entropy(quantity, logits_gaussian, points):
    approximation = logits_gaussian(*logits(20, 3), ws.likelihoods.Categorical(num_classes=3))
    predictive = predict_linearised(approximation, points(20), link="probit")
    with pytest.raises(ValueError, match=f"`{quantity}` must be .* got Probit. Use `LaplaceBridge"):
        getattr(predictive, quantity)


@pytest.mark.parametrize("num_classes", [2, 3, 10])
def test_the_bridge_equals_its_formula(num_classes, x64, logits_gaussian, points):
    mean, covariance = logits(20, num_classes, seed=num_classes)
    approximation = logits_gaussian(mean, covariance, ws.likelihoods.Categorical(num_classes=num_classes))
    predictive = predict_linearised(approximation, points(20), link="bridge")
    alpha = concentrations(*centred(mean, covariance))
    np.testing.assert_allclose(predictive.probabilities, alpha / alpha.sum(1, keepdims=True), rtol=1e-9)
    np.testing.assert_allclose(np.exp(predictive.mixture.outputs.blocks[0][0, 0]), alpha[0], rtol=1e-9)


def test_the_bridge_is_that_of_the_paper_where_row_sums_are_equal(x64, logits_gaussian, points):
    mean = logits(20, 3)[0]
    covariance = np.tile(0.7 * np.eye(3) + 0.4, (20, 1, 1))
    sums, whole = covariance.sum(2), covariance.sum((1, 2))[:, None]
    conditioned = mean - sums * mean.sum(1, keepdims=True) / whole
    alpha = concentrations(conditioned, covariance - sums[:, :, None] * sums[:, None, :] / whole[:, :, None])
    approximation = logits_gaussian(mean, covariance, ws.likelihoods.Categorical(num_classes=3))
    predictive = predict_linearised(approximation, points(20), link=LaplaceBridge())
    np.testing.assert_allclose(predictive.probabilities, alpha / alpha.sum(1, keepdims=True), rtol=1e-9)


def test_the_bridge_does_not_see_what_all_logits_share(x64, logits_gaussian, points):
    mean, covariance = logits(20, 3)
    likelihood = ws.likelihoods.Categorical(num_classes=3)
    plain = predict_linearised(logits_gaussian(mean, covariance, likelihood), points(20), link="bridge")
    shifted = logits_gaussian(mean + 7.0, covariance + 3.0, likelihood)
    other = predict_linearised(shifted, points(20), link="bridge")
    np.testing.assert_allclose(other.probabilities, plain.probabilities, rtol=1e-9)
    np.testing.assert_allclose(other.expected_entropy, plain.expected_entropy, rtol=1e-9)


def dirichlet_gaussian(alpha):
    """Laplace's method for the logits of Dirichlet(α), in the subspace of sum zero: what the bridge inverts."""
    num_classes, inverse = alpha.shape[1], 1 / alpha
    mean = np.log(alpha) - np.log(alpha).mean(1, keepdims=True)
    pairs = inverse[:, :, None] + inverse[:, None, :] - inverse.sum(1)[:, None, None] / num_classes
    return mean, inverse[:, :, None] * np.eye(num_classes) - pairs / num_classes


@pytest.mark.parametrize("num_classes", [2, 3, 10])
def test_the_bridge_inverts_laplaces_method_for_a_dirichlet(num_classes, x64, logits_gaussian, points):
    alpha = 4 * np.exp(np.random.default_rng(5).normal(size=(20, num_classes)))
    mean, covariance = dirichlet_gaussian(alpha)
    # The covariance is singular along what all logits share; the bridge does not see a spread that is added there.
    approximation = logits_gaussian(mean, covariance + 1.0, ws.likelihoods.Categorical(num_classes=num_classes))
    predictive = predict_linearised(approximation, points(20), link="bridge")
    total = alpha.sum(1, keepdims=True)
    np.testing.assert_allclose(predictive.probabilities, alpha / total, rtol=1e-9)
    within = special.digamma(total[:, 0] + 1) - np.sum(alpha / total * special.digamma(alpha + 1), axis=1)
    np.testing.assert_allclose(predictive.expected_entropy, within, rtol=1e-8)
    # Against the Gaussian itself the error is that of Laplace's method: 0.03 measured, for α around 4.
    white = np.random.default_rng(6).normal(size=(4000, 20, num_classes))
    roots = np.linalg.cholesky(covariance + 1.0)
    exact = special.softmax(mean + np.einsum("nij,snj->sni", roots, white), axis=2).mean(0)
    assert ws.total_variation(predictive, exact) < 0.05


def test_the_bridge_is_rougher_than_the_probit(x64, logits_gaussian, points):
    """Total variation from Monte Carlo at S = I: what the docstring says."""
    mean = np.random.default_rng(7).normal(size=(20, 10))
    approximation = logits_gaussian(mean, np.tile(np.eye(10), (20, 1, 1)), ws.likelihoods.Categorical(num_classes=10))
    white = np.random.default_rng(8).normal(size=(10_000, 20, 10))
    exact = special.softmax(mean + white, axis=2).mean(0)
    error = lambda link: ws.total_variation(predict_linearised(approximation, points(20), link=link), exact)
    # Each is an average over 20 points whose own errors spread by less than 0.1.
    assert error("bridge") == pytest.approx(0.23, abs=0.05)
    assert error("probit") == pytest.approx(0.012, abs=0.01)


def test_the_expected_entropy_is_that_of_the_dirichlet(x64, logits_gaussian, points):
    mean, covariance = logits(20, 3, spread=2.0)
    approximation = logits_gaussian(mean, covariance, ws.likelihoods.Categorical(num_classes=3))
    predictive = predict_linearised(approximation, points(20), link="bridge")
    alpha, rng = concentrations(*centred(mean, covariance)), np.random.default_rng(4)
    entropies = np.stack([stats.entropy(rng.dirichlet(each, 40_000), axis=1) for each in alpha])
    errors = 5 * entropies.std(1) / np.sqrt(40_000)
    np.testing.assert_array_less(np.abs(predictive.expected_entropy - entropies.mean(1)), errors)
    information = np.asarray(predictive.entropy) - np.asarray(predictive.expected_entropy)
    np.testing.assert_allclose(predictive.mutual_information, information)
    assert np.all(information > 0)


def test_certain_logits_stay_finite(logits_gaussian, points):
    mean, covariance = np.tile([[60.0, -60.0, 0.0], [1.0, 2.0, 3.0]], (10, 1)), np.tile(1e-6 * np.eye(3), (20, 1, 1))
    approximation = logits_gaussian(mean, covariance, ws.likelihoods.Categorical(num_classes=3))
    predictive = predict_linearised(approximation, points(20), link="bridge")
    np.testing.assert_allclose(predictive.probabilities[0], [1.0, 0.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(predictive.expected_entropy, predictive.entropy, atol=1e-5)
    assert np.all(np.isfinite(predictive.log_density(np.arange(20) % 3)))


def test_one_logit_stands_for_two(x64, logits_gaussian, points):
    mean, variance = np.linspace(-2, 3, 20)[:, None], np.linspace(0.2, 4, 20)[:, None, None]
    one = predict_linearised(logits_gaussian(mean, variance, ws.likelihoods.Bernoulli()), points(20), link="bridge")
    pair = np.concatenate([np.zeros((20, 1)), mean], axis=1)  # softmax(0, f) = sigmoid(f)
    covariance = variance * np.array([[0.0, 0.0], [0.0, 1.0]]) + 0.5  # what both share does not matter
    covariance = covariance + 1e-13 * np.eye(2)  # for its root
    likelihood = ws.likelihoods.Categorical(num_classes=2)
    two = predict_linearised(logits_gaussian(pair, covariance, likelihood), points(20), link="bridge")
    np.testing.assert_allclose(one.probabilities, two.probabilities, rtol=1e-9)
    np.testing.assert_allclose(one.expected_entropy, two.expected_entropy, rtol=1e-9)
    np.testing.assert_allclose(one.probabilities[:, 1], special.expit(mean[:, 0]), rtol=1e-9)


def test_a_bridge_needs_a_spread(logits_gaussian, points):
    covariance = np.tile(1e8 * (np.ones((3, 3)) + 1e-12 * np.eye(3)), (1, 1, 1))
    approximation = logits_gaussian(np.zeros((1, 3)), covariance, ws.likelihoods.Categorical(num_classes=3))
    with pytest.raises(ValueError, match="variance must be positive for LaplaceBridge"):
        predict_linearised(approximation, points(1), link="bridge")


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("likelihood", [ws.likelihoods.Categorical(num_classes=3), ws.likelihoods.Bernoulli()])
def test_all_scores_and_samples_of_classes(link, likelihood, logits_gaussian, points):
    num_outputs, labels = (3 if isinstance(likelihood, ws.likelihoods.Categorical) else 1), np.arange(20) % 2
    approximation = logits_gaussian(*logits(20, num_outputs), likelihood)
    predictive = predict_linearised(approximation, points(20), link=link)
    table = np.asarray(predictive.probabilities, float)
    np.testing.assert_allclose(table.sum(1), 1, atol=1e-6)
    scores = ws.scores(predictive, labels)
    np.testing.assert_allclose(scores["nll"], -np.mean(np.log(table[np.arange(20), labels])), rtol=1e-5)
    assert scores["accuracy"] == np.mean(table.argmax(1) == labels)
    assert set(scores) == {"accuracy", "nll", "brier", "ece"}
    assert ws.agreement(predictive, predictive) == 1.0
    assert ws.total_variation(predictive, table) == pytest.approx(0, abs=1e-6)
    samples = np.asarray(predictive.sample(jax.random.key(1), 2000))
    shares = np.stack([np.mean(samples == c, axis=0) for c in range(table.shape[1])], axis=1)
    # 60 shares, each with a standard error below ½/√n.
    np.testing.assert_allclose(shares, table, atol=5.5 * 0.5 / np.sqrt(2000))
