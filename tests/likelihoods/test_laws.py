"""Laws that every likelihood obeys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.laws import CLASSIFICATION_LIKELIHOODS, REGRESSION_LIKELIHOODS

import weightscape as ws
from weightscape.core import InputError

every_regression = pytest.mark.parametrize(
    ("likelihood", "outputs", "own"), REGRESSION_LIKELIHOODS.values(), ids=REGRESSION_LIKELIHOODS
)
every_classification = pytest.mark.parametrize(
    ("likelihood", "outputs"), CLASSIFICATION_LIKELIHOODS.values(), ids=CLASSIFICATION_LIKELIHOODS
)

# Substituting y = sinh(u) reaches far into heavy tails: beyond 4e6 a t with 4 degrees has no variance left.
U = np.linspace(-16, 16, 40_001)
GRID = np.sinh(U)


def integrate(values, upto=None):
    return np.trapezoid((values * np.cosh(U)[:, None])[:upto], U[:upto], axis=0)


def densities(likelihood, outputs, own):
    at = lambda y: likelihood.log_density(outputs, jnp.full((len(outputs),), y), own)
    return np.exp(np.asarray(jax.vmap(at)(jnp.asarray(GRID))))


@pytest.fixture(autouse=True)
def _double(x64):
    """All of these laws are checked in double precision."""


def prepared(outputs, own):
    return jnp.asarray(outputs), {name: jnp.asarray(value) for name, value in own.items()}


@every_regression
def test_density_integrates_to_one_with_its_mean_and_variance(likelihood, outputs, own):
    outputs, own = prepared(outputs, own)
    density = densities(likelihood, outputs, own)
    total = integrate(density)
    mean = integrate(density * GRID[:, None])
    variance = integrate(density * (GRID[:, None] - mean) ** 2)
    np.testing.assert_allclose(total, 1, atol=1e-9)
    np.testing.assert_allclose(likelihood.mean(outputs, own)[:, 0], mean, atol=1e-9)
    np.testing.assert_allclose(likelihood.variance(outputs, own)[:, 0], variance, rtol=1e-8)


@every_regression
def test_cumulative_is_the_integral_of_the_density(likelihood, outputs, own):
    outputs, own = prepared(outputs, own)
    density = densities(likelihood, outputs, own)
    for upto in (18_000, 20_300, 21_500):
        here = jnp.full((len(outputs), 1), GRID[upto - 1])
        # The end of a trapezoid sum errs by h² f'/12 with h = 8e-4.
        np.testing.assert_allclose(likelihood.cumulative(outputs, here, own)[:, 0], integrate(density, upto), atol=1e-6)


@every_regression
def test_samples_follow_the_cumulative(likelihood, outputs, own):
    outputs, own = prepared(outputs, own)
    keys = jax.random.split(jax.random.key(3), 5000)
    samples = jax.vmap(lambda key: likelihood.sample(key, outputs, own))(keys)
    uniform = np.asarray(jax.vmap(lambda y: likelihood.cumulative(outputs, y, own))(samples))
    for point in range(len(outputs)):
        assert stats.kstest(uniform[:, point, 0], "uniform").pvalue > 1e-4
    assert abs(np.corrcoef(uniform[:, 0, 0], uniform[:, 1, 0])[0, 1]) < 6 / np.sqrt(5000)


@every_regression
def test_vector_targets_add_up(likelihood, outputs, own):
    outputs, own = prepared(outputs, own)
    halves = jnp.split(outputs, likelihood.num_outputs(jnp.zeros((2,))), axis=1)
    both = jnp.concatenate([jnp.concatenate([half, half + 0.1], axis=1) for half in halves], axis=1)
    y = jnp.asarray([[0.2, -0.4], [0.1, 0.9]])
    shifted = jnp.concatenate([half + 0.1 for half in halves], axis=1)
    expected = likelihood.log_density(outputs, y[:, 0], own) + likelihood.log_density(shifted, y[:, 1], own)
    np.testing.assert_allclose(likelihood.log_density(both, y, own), expected, rtol=1e-12)
    assert likelihood.num_outputs(y) == both.shape[1]


@every_classification
def test_probabilities_sum_to_one_and_are_the_density(likelihood, outputs):
    outputs = jnp.asarray(outputs)
    probabilities = np.asarray(likelihood.probabilities(outputs))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    for label in range(likelihood.num_classes):
        density = likelihood.log_density(outputs, jnp.full((len(outputs),), label))
        np.testing.assert_allclose(np.exp(density), probabilities[:, label], rtol=1e-12)


@every_classification
def test_class_samples_have_their_probabilities(likelihood, outputs):
    outputs, num = jnp.asarray(outputs), 20_000
    labels = np.asarray(jax.vmap(lambda key: likelihood.sample(key, outputs))(jax.random.split(jax.random.key(0), num)))
    expected = np.asarray(likelihood.probabilities(outputs))
    for label in range(likelihood.num_classes):
        frequency = (labels == label).mean(axis=0)
        error = np.sqrt(expected[:, label] * (1 - expected[:, label]) / num)
        assert np.all(np.abs(frequency - expected[:, label]) < 5 * error)


def test_against_scipy():
    outputs, y = jnp.asarray([[0.5], [-1.0]]), jnp.asarray([0.1, 0.2])
    np.testing.assert_allclose(
        ws.likelihoods.Gaussian(0.7).log_density(outputs, y), stats.norm.logpdf([0.1, 0.2], [0.5, -1.0], 0.7)
    )
    two = jnp.asarray([[0.5, -2.0], [-1.0, 1.5]])
    np.testing.assert_allclose(
        ws.likelihoods.HeteroscedasticGaussian().log_density(two, y),
        stats.norm.logpdf([0.1, 0.2], [0.5, -1.0], np.exp([-2.0, 1.5])),
    )
    np.testing.assert_allclose(
        ws.likelihoods.Bernoulli().log_density(outputs, jnp.asarray([1, 0])),
        np.log([1 / (1 + np.exp(-0.5)), 1 - 1 / (1 + np.exp(1.0))]),
    )


def test_student_t_is_scipys():
    outputs, y = jnp.asarray([[0.5], [-1.0]]), jnp.asarray([0.1, 4.0])
    truth = stats.t(5, [0.5, -1.0], 0.25)
    likelihood = ws.likelihoods.StudentT(5.0, 0.25)
    np.testing.assert_allclose(likelihood.log_density(outputs, y), truth.logpdf([0.1, 4.0]), rtol=1e-12)
    np.testing.assert_allclose(likelihood.cumulative(outputs, y[:, None])[:, 0], truth.cdf([0.1, 4.0]), rtol=1e-10)
    np.testing.assert_allclose(likelihood.variance(outputs)[:, 0], truth.var(), rtol=1e-12)


def test_poisson_is_scipys():
    likelihood, outputs = ws.likelihoods.Poisson(), jnp.asarray([[0.5, -1.0], [2.0, 0.0]])
    rate, counts = np.exp(np.asarray(outputs)), np.array([[2.0, 0.0], [9.0, 1.0]])
    expected = stats.poisson.logpmf(counts, rate).sum(axis=1)
    np.testing.assert_allclose(likelihood.log_density(outputs, jnp.asarray(counts)), expected, rtol=1e-10)
    for y in (counts, counts + 0.5, counts - 1.0):
        np.testing.assert_allclose(
            likelihood.cumulative(outputs, jnp.asarray(y)), stats.poisson.cdf(y, rate), rtol=1e-10
        )
    np.testing.assert_allclose(likelihood.mean(outputs), rate)
    samples = np.asarray(
        jax.vmap(lambda key: likelihood.sample(key, outputs))(jax.random.split(jax.random.key(0), 20_000))
    )
    error = np.sqrt(rate / 20_000)
    assert np.all(np.abs(samples.mean(axis=0) - rate) < 5 * error)
    assert np.all(np.abs(samples.var(axis=0) - rate) < 5 * np.sqrt((rate + 2 * rate**2) / 20_000))


def test_each_entry_of_a_target_can_have_its_own_scale():
    outputs, y = jnp.zeros((3, 2)), jnp.asarray([[0.1, 2.0], [-0.3, 1.0], [0.2, -3.0]])
    expected = stats.norm.logpdf(np.asarray(y), 0, [0.25, 2.0]).sum(axis=1)
    np.testing.assert_allclose(ws.likelihoods.Gaussian((0.25, 2.0)).log_density(outputs, y), expected, rtol=1e-12)
    inferred = ws.likelihoods.Gaussian(ws.priors.HalfNormal(1.0), num_scales=2)
    own = {"scale": jnp.asarray([0.25, 2.0])}
    np.testing.assert_allclose(inferred.log_density(outputs, y, own), expected, rtol=1e-12)
    model = ws.Model(ws.networks.MLP(hidden=()), inferred, ws.priors.Normal(1.0))
    posterior = model.condition(ws.Batch(np.ones((3, 1)), np.asarray(y)))
    position = posterior.start_position(jax.random.key(0))
    assert position.likelihood["scale"].shape == (2,)
    sigma = posterior.constrain(position._replace(likelihood={"scale": jnp.log(own["scale"])})).likelihood["scale"]
    np.testing.assert_allclose(sigma, own["scale"], rtol=1e-12)


@pytest.mark.parametrize(
    ("likelihood", "y", "message"),
    [
        (ws.likelihoods.Categorical(3), jnp.asarray([0, 3]), r"Classes must lie in 0..2, got 0..3"),
        (ws.likelihoods.Categorical(3), jnp.asarray([0.0, 1.0]), "one integer for each point"),
        (ws.likelihoods.Bernoulli(), jnp.asarray([0, 1, 2]), r"Classes must lie in 0..1"),
        (ws.likelihoods.Poisson(), jnp.asarray([0.0, 1.5]), "whole numbers of at least 0, got values such as 1.5"),
        (ws.likelihoods.Poisson(), jnp.asarray([0.0, -1.0]), "whole numbers of at least 0, got values such as -1.0"),
        (ws.likelihoods.Gaussian(), jnp.zeros((2, 2, 2)), r"shape \(point,\) or \(point, target\)"),
    ],
)
def test_targets_that_cannot_be_are_refused(likelihood, y, message):
    with pytest.raises(InputError, match=message):
        likelihood.check_targets(y)
    with pytest.raises(InputError, match="`scale` of Gaussian must be positive"):
        ws.likelihoods.Gaussian(0.0)
    with pytest.raises(InputError, match="`degrees` of StudentT must be larger than 2, got 2.0"):
        ws.likelihoods.StudentT(2.0)


def scores_at(likelihood, outputs, own, y):
    """The gradient of log p(y_i) in (outputs, φ) for each point, one row of coordinates each."""

    def one(output, target):
        joint = lambda output, own: likelihood.log_density(output[None], target[None], own)[0]
        of_outputs, of_own = jax.grad(joint, (0, 1))(output, own)
        return jnp.concatenate([of_outputs, *(jnp.atleast_1d(of_own[name]) for name in sorted(of_own))])

    return jax.vmap(one)(outputs, y)


@every_regression
def test_information_is_the_covariance_of_the_score(likelihood, outputs, own):
    outputs, own = prepared(outputs, own)
    root = likelihood.information_root(outputs, own)
    weights = densities(likelihood, outputs, own)
    scores = jax.vmap(lambda y: scores_at(likelihood, outputs, own, jnp.full((len(outputs),), y)))(jnp.asarray(GRID))
    for point in range(len(outputs)):
        products = weights[:, point, None, None] * np.einsum("gi,gj->gij", scores[:, point], scores[:, point])
        truth = np.trapezoid(products * np.cosh(U)[:, None, None], U, axis=0)
        np.testing.assert_allclose(root[point] @ root[point].T, truth, rtol=1e-6, atol=1e-8)


@every_classification
def test_information_of_classes_is_the_covariance_of_the_score(likelihood, outputs):
    outputs = jnp.asarray(outputs)
    probabilities, root = likelihood.probabilities(outputs), likelihood.information_root(outputs)
    truth = 0
    for label in range(likelihood.num_classes):
        score = scores_at(likelihood, outputs, {}, jnp.full((len(outputs),), label))
        truth = truth + probabilities[:, label, None, None] * score[:, :, None] * score[:, None, :]
    np.testing.assert_allclose(root @ jnp.swapaxes(root, 1, 2), truth, rtol=1e-10, atol=1e-12)


def test_information_of_vector_targets_and_counts():
    own = {"scale": jnp.asarray(0.5)}
    shared = ws.likelihoods.Gaussian(ws.priors.HalfNormal(1.0)).information_root(jnp.zeros((1, 3)), own)[0]
    np.testing.assert_allclose(shared @ shared.T, np.diag([4.0, 4.0, 4.0, 2 * 3 / 0.25]), rtol=1e-12)
    both = {"scale": jnp.asarray([0.5, 2.0])}
    each = ws.likelihoods.Gaussian(ws.priors.HalfNormal(1.0), num_scales=2).information_root(jnp.zeros((1, 2)), both)[0]
    np.testing.assert_allclose(each @ each.T, np.diag([4.0, 0.25, 8.0, 0.5]), rtol=1e-12)
    counts = ws.likelihoods.Poisson().information_root(jnp.asarray([[0.7, -1.0]]))[0]
    np.testing.assert_allclose(counts @ counts.T, np.diag(np.exp([0.7, -1.0])), rtol=1e-12)
