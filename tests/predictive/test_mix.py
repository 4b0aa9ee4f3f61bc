"""Mixtures of predictives, and of draws by shares, against direct sums over all components."""

import jax
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import weightscape as ws
from weightscape.core import InputError
from weightscape.data import Scaling
from weightscape.draws import combine
from weightscape.predictive import mix, predict_linearised

NUM_POINTS = 5
Y = np.linspace(-12.0, 30.0, NUM_POINTS)


def scaling(mean, scale):
    return Scaling(np.zeros(1), np.ones(1), np.asarray(mean), np.asarray(scale))


class Normals:
    """A mixture of normals at each point, written out: means and scales (component, point) and weights."""

    def __init__(self, *parts):
        self.means, self.scales, self.weights = (np.concatenate(each) for each in zip(*parts, strict=True))

    def log_density(self, y):
        return np.log(np.sum(self.weights[:, None] * norm.pdf(y, self.means, self.scales), axis=0))

    def cumulative(self, y):
        return np.sum(self.weights[:, None] * norm.cdf(y, self.means, self.scales), axis=0)

    def quantile(self, q):
        at = lambda n: lambda y: self.cumulative(np.full(NUM_POINTS, y))[n] - q
        return np.array([brentq(at(n), -1e3, 1e3, xtol=1e-9) for n in range(NUM_POINTS)])

    @property
    def mean(self):
        return self.weights @ self.means

    @property
    def aleatoric_variance(self):
        return self.weights @ self.scales**2

    @property
    def epistemic_variance(self):
        return self.weights @ (self.means - self.mean) ** 2


@pytest.fixture
def numbers(table_draws, points, table_gaussian):
    """Three predictives of one target: two scalings, three kinds of noise, weighted draws; and the same as normals."""
    generator = np.random.default_rng(0)
    x = points(NUM_POINTS)
    first, noise = generator.normal(size=(6, NUM_POINTS, 1)), np.exp(generator.normal(size=6) - 1)
    log_weights = generator.normal(size=6)
    inferred = ws.likelihoods.Gaussian(scale=ws.priors.Gamma(0.5, 1.0))
    own = {"scale": noise}
    one = ws.predict(table_draws(first, inferred, own=own, log_weights=log_weights, scaling=scaling(4.0, 9.0)), x)
    second = generator.normal(size=(3, NUM_POINTS, 2))
    other = ws.predict(table_draws(second, ws.likelihoods.HeteroscedasticGaussian(), scaling=scaling(-2.0, 5.0)), x)
    mean, spread = generator.normal(size=(NUM_POINTS, 1)), 0.3 + np.arange(NUM_POINTS)
    gaussian = table_gaussian(mean, np.diag(spread**2), ws.likelihoods.Gaussian(scale=0.7), np.zeros(NUM_POINTS))
    third = predict_linearised(gaussian, x)
    weights = np.exp(log_weights) / np.exp(log_weights).sum()
    parts = [
        (4 + 9 * first[..., 0], 9 * np.repeat(noise[:, None], NUM_POINTS, axis=1), weights),
        (-2 + 5 * second[..., 0], 5 * np.exp(second[..., 1]), np.full(3, 1 / 3)),
        (mean.T, np.sqrt(spread**2 + 0.7**2)[None], np.ones(1)),
    ]
    return [one, other, third], parts, spread


def test_moments_densities_and_quantiles_are_those_of_all_components(numbers):
    predictives, parts, spread = numbers
    shares = np.array([0.5, 0.2, 0.3])
    mixed = mix(predictives, 7 * shares)
    exact = Normals(*[(means, scales, share * w) for share, (means, scales, w) in zip(shares, parts, strict=True)])
    np.testing.assert_allclose(mixed.mean, exact.mean, rtol=1e-5, atol=1e-5)
    # The linearised part has its doubt within: spread² of its variance is epistemic.
    within = shares[2] * spread**2
    np.testing.assert_allclose(mixed.aleatoric_std**2, exact.aleatoric_variance - within, rtol=1e-4)
    np.testing.assert_allclose(mixed.epistemic_std**2, exact.epistemic_variance + within, rtol=1e-4)
    np.testing.assert_allclose(mixed.std**2, exact.aleatoric_variance + exact.epistemic_variance, rtol=1e-4)
    np.testing.assert_allclose(mixed.log_density(Y), exact.log_density(Y), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mixed.cumulative(Y), exact.cumulative(Y), atol=1e-5)
    for q in (0.05, 0.5, 0.95):
        np.testing.assert_allclose(mixed.quantile(q), exact.quantile(q), rtol=2e-4, atol=2e-4)
    assert float(ws.scores(mixed, Y)["nll"]) == pytest.approx(-exact.log_density(Y).mean(), rel=1e-4)


def test_samples_have_the_mean_and_the_variance_of_the_mixture(numbers):
    predictives, _, _ = numbers
    mixed, n = mix(predictives, [0.5, 0.2, 0.3]), 20_000
    samples = np.asarray(mixed.sample(jax.random.key(0), n), np.float64)
    assert samples.shape == (n, NUM_POINTS)
    variance = np.asarray(mixed.std, np.float64) ** 2
    # Six standard errors; that of the variance from the samples' own fourth moment.
    np.testing.assert_array_less(np.abs(samples.mean(axis=0) - mixed.mean), 6 * np.sqrt(variance / n))
    fourth = ((samples - samples.mean(axis=0)) ** 4).mean(axis=0)
    np.testing.assert_array_less(np.abs(samples.var(axis=0) - variance), 6 * np.sqrt((fourth - variance**2) / n))


def test_one_of_one_is_itself_and_nothing_of_another_changes_nothing(numbers):
    (first, second, _), _, _ = numbers
    for mixed in (mix([first], [3.0]), mix([second, first], [0.0, 1.0])):
        np.testing.assert_allclose(mixed.mean, first.mean, rtol=1e-5)
        np.testing.assert_allclose(mixed.log_density(Y), first.log_density(Y), rtol=1e-5)
        np.testing.assert_allclose(mixed.quantile(0.9), first.quantile(0.9), rtol=1e-5)


def test_vector_targets_are_one_event(table_draws, points):
    generator = np.random.default_rng(1)
    outputs = [generator.normal(size=(n, 2, 3)) for n in (2, 4)]
    like, scales = np.zeros((1, 3)), ([1.0, 2.0, 3.0], [4.0, 0.5, 1.0])
    build = lambda out, scale: table_draws(
        out, ws.likelihoods.Gaussian(scale=0.5), y=like, scaling=scaling([1.0, 0.0, -1.0], scale)
    )
    one, other = (ws.predict(build(out, scale), points(2)) for out, scale in zip(outputs, scales, strict=True))
    y = generator.normal(size=(2, 3))
    direct = np.logaddexp(np.log(0.25) + one.log_density(y), np.log(0.75) + other.log_density(y))
    mixed = mix([one, other], [0.25, 0.75])
    np.testing.assert_allclose(mixed.log_density(y), direct, rtol=1e-5)
    assert mixed.mean.shape == (2, 3) and mixed.interval(0.9)[0].shape == (2, 3)
    np.testing.assert_allclose(mixed.mean, 0.25 * one.mean + 0.75 * other.mean, rtol=1e-4, atol=1e-5)


def test_probabilities_are_averaged_and_disagreement_is_epistemic(table_draws, points):
    generator = np.random.default_rng(2)
    build = lambda n: table_draws(3 * generator.normal(size=(n, 4, 3)), ws.likelihoods.Categorical(3), y=[0])
    one, other = (ws.predict(build(n), points(4)) for n in (2, 5))
    mixed = mix([one, other], [0.4, 0.6])
    probabilities = 0.4 * np.asarray(one.probabilities) + 0.6 * np.asarray(other.probabilities)
    expected = 0.4 * np.asarray(one.expected_entropy) + 0.6 * np.asarray(other.expected_entropy)
    entropy = -np.sum(probabilities * np.log(probabilities), axis=1)
    np.testing.assert_allclose(mixed.probabilities, probabilities, rtol=1e-5)
    np.testing.assert_allclose(mixed.entropy, entropy, rtol=1e-5)
    np.testing.assert_allclose(mixed.expected_entropy, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mixed.mutual_information, entropy - expected, rtol=1e-4, atol=1e-5)
    labels = np.array([2, 0, 1, 1])
    np.testing.assert_allclose(mixed.log_density(labels), np.log(probabilities[np.arange(4), labels]), rtol=1e-4)


def test_a_part_without_a_split_of_its_entropy_leaves_none(logits_gaussian, table_draws, points):
    gaussian = logits_gaussian(np.zeros((2, 3)), np.eye(3)[None].repeat(2, axis=0), ws.likelihoods.Categorical(3))
    probit = predict_linearised(gaussian, points(2))
    drawn = ws.predict(table_draws(np.ones((2, 2, 3)), ws.likelihoods.Categorical(3), y=[0]), points(2))
    mixed = mix([probit, drawn], [0.5, 0.5])
    np.testing.assert_allclose(mixed.probabilities, np.full((2, 3), 1 / 3), rtol=1e-5)
    with pytest.raises(InputError, match="splits the entropy"):
        _ = mixed.mutual_information


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5], "must be 3 numbers, got shape \\(1,\\)"),
        ([0.5, -0.1, 0.6], "not negative and not all zero"),
        ([0.0, 0.0, 0.0], "not negative and not all zero"),
        ([0.5, np.nan, 0.5], "must be finite"),
    ],
)
def test_weights_that_are_no_shares_are_refused(numbers, weights, message):
    with pytest.raises(InputError, match=message):
        mix(numbers[0], weights)


def test_predictives_of_other_points_are_refused(numbers, table_draws, points):
    fewer = ws.predict(table_draws(np.zeros((2, 2, 1)), ws.likelihoods.Gaussian(scale=1.0)), points(2))
    with pytest.raises(InputError, match="of one task and the same points"):
        mix([numbers[0][0], fewer], [0.5, 0.5])
    with pytest.raises(InputError, match="must hold at least one"):
        mix([], [])


def test_draws_combined_by_shares_predict_as_the_mixture_does(table_draws, points):
    generator = np.random.default_rng(3)
    likelihood = ws.likelihoods.Gaussian(scale=ws.priors.Gamma(0.5, 1.0))
    model_of = lambda n, log_weights=None: table_draws(
        generator.normal(size=(n, NUM_POINTS, 1)),
        likelihood,
        own={"scale": np.exp(generator.normal(size=n))},
        log_weights=log_weights,
    )
    sets = [model_of(4), model_of(7, generator.normal(size=7)), model_of(2)]
    x, shares = points(NUM_POINTS), [0.2, 0.5, 0.3]
    mixed, combined = mix([ws.predict(each, x) for each in sets], shares), combine(sets, shares)
    predicted = ws.predict(combined, x)
    assert len(combined) == 13 and combined.facts["shares"] == shares
    for name in ("mean", "std", "epistemic_std", "aleatoric_std"):
        np.testing.assert_allclose(getattr(predicted, name), getattr(mixed, name), rtol=1e-4)
    np.testing.assert_allclose(predicted.log_density(Y / 9), mixed.log_density(Y / 9), rtol=1e-4)


def test_equal_weights_are_plain_merging(table_draws, points):
    generator = np.random.default_rng(4)
    likelihood = ws.likelihoods.Gaussian(scale=0.5)
    sets = [table_draws(generator.normal(size=(6, NUM_POINTS, 1)), likelihood) for _ in range(3)]
    x = points(NUM_POINTS)
    merged = ws.predict(sets[0].merge(sets[1:]), x)
    for other in (ws.predict(combine(sets), x), ws.predict(combine(sets, [2, 2, 2]), x)):
        np.testing.assert_allclose(other.mean, merged.mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(other.interval(0.5)[0], merged.interval(0.5)[0], rtol=1e-4, atol=1e-5)
    longer = table_draws(generator.normal(size=(18, NUM_POINTS, 1)), likelihood)
    both = combine([sets[0], longer])  # in proportion to their draws: 6 and 18
    np.testing.assert_allclose(np.exp(both.log_weights), np.full((1, 24), 1 / 24), rtol=1e-5)


def test_draws_of_other_models_are_not_combined(table_draws):
    one = table_draws(np.zeros((2, 1, 1)), ws.likelihoods.Gaussian(scale=0.5))
    for other in (
        table_draws(np.zeros((2, 1, 1)), ws.likelihoods.Gaussian(scale=0.6)),
        table_draws(np.zeros((2, 1, 1)), ws.likelihoods.Gaussian(scale=0.5), scaling=scaling(0.0, 2.0)),
    ):
        with pytest.raises(InputError, match="one model and one scaling, got different ones. Mix their predictions"):
            combine([one, other])
