"""Linearised predictions of regressions: exact for linear models, and finite differences for others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests import known

import weightscape as ws
from weightscape.inference.gaussian import Full, Gaussian
from weightscape.predictive import Exact, FunctionSamples, function_gaussian, predict_linearised
from weightscape.predictive.plan import make_jacobian_plan

NUM_SAMPLES = 20_000


@pytest.fixture
def linear(x64):
    """Linear regression, its exact posterior as an approximation, and new inputs."""
    problem = known.linear()
    mean = ws.Parameters({"layer0": {"weight": jnp.asarray(problem.mean)[:, None]}}, {}, ())
    approximation = Gaussian.over(problem.posterior, mean, Full.of_covariance(jnp.asarray(problem.covariance)))
    return problem, approximation, np.random.default_rng(0).normal(0, 3, size=(21, 3))


@pytest.fixture
def scaled(x64, gaussian_over):
    """Two correlated targets with noise of their own, in units far from the network's; predictions by hand."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(50, 7, size=(30, 3)), rng.normal([200.0, -3.0], [40.0, 0.01], size=(30, 2))
    scaling, noise = ws.data.Scaling.fit(x, y, "regression"), np.array([0.3, 0.5])
    model = ws.Model(ws.networks.MLP(hidden=()), ws.likelihoods.Gaussian(noise), ws.priors.Normal())
    approximation = gaussian_over(model.condition(ws.Batch(x, y, scaling)))
    # θ runs through the two shifts, then through the weights by input and output.
    standard = (x - x.mean(0)) / x.std(0)
    jacobian = np.concatenate(
        [np.tile(np.eye(2), (30, 1, 1)), np.einsum("ni,ot->noit", standard, np.eye(2)).reshape(30, 2, 6)], 2
    )
    root = np.asarray(approximation.covariance.root_matrix)
    epistemic = jacobian @ root @ root.T @ jacobian.transpose(0, 2, 1)
    units = np.diag(y.std(0))
    mean = jacobian @ np.asarray(approximation.location) * y.std(0) + y.mean(0)
    return approximation, x, y, mean, units @ epistemic @ units, units @ np.diag(noise**2) @ units


def test_a_linear_model_has_the_exact_predictive(linear):
    problem, approximation, x = linear
    predictive = predict_linearised(approximation, x)
    mean, epistemic = x @ problem.mean, np.sqrt(np.einsum("ni,ij,nj->n", x, problem.covariance, x))
    total = np.sqrt(epistemic**2 + problem.noise**2)
    np.testing.assert_allclose(predictive.mean, mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(predictive.epistemic_std, epistemic, rtol=1e-9)
    np.testing.assert_allclose(predictive.aleatoric_std, np.full(21, problem.noise), rtol=1e-12)
    np.testing.assert_allclose(predictive.std, total, rtol=1e-9)
    np.testing.assert_allclose(predictive.variance, total**2, rtol=1e-9)
    y = mean + np.linspace(-3, 3, 21) * total
    exact = stats.norm(mean, total)
    np.testing.assert_allclose(predictive.log_density(y), exact.logpdf(y), rtol=1e-9)
    np.testing.assert_allclose(predictive.cumulative(y), exact.cdf(y), rtol=1e-9)
    np.testing.assert_allclose(predictive.interval(0.9), exact.interval(0.9), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(predictive.quantile(0.2), exact.ppf(0.2), rtol=1e-9, atol=1e-9)


def test_correlated_targets_in_original_units(scaled):
    approximation, x, y, mean, epistemic, noise = scaled
    predictive = predict_linearised(approximation, x, link="exact")
    variances = np.diagonal(epistemic, axis1=1, axis2=2)
    total = epistemic + noise
    marginal = stats.norm(mean, np.sqrt(np.diagonal(total, axis1=1, axis2=2)))
    np.testing.assert_allclose(predictive.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(predictive.epistemic_std, np.sqrt(variances), rtol=1e-9)
    np.testing.assert_allclose(predictive.aleatoric_std, np.tile(np.sqrt(np.diag(noise)), (30, 1)), rtol=1e-9)
    np.testing.assert_allclose(predictive.std, marginal.std(), rtol=1e-9)
    joint = [stats.multivariate_normal(*each[:2]).logpdf(each[2]) for each in zip(mean, total, y, strict=True)]
    np.testing.assert_allclose(predictive.log_density(y), joint, rtol=1e-9)
    np.testing.assert_allclose(predictive.cumulative(y), marginal.cdf(y), rtol=1e-9)
    np.testing.assert_allclose(predictive.interval(0.5), marginal.interval(0.5), rtol=1e-9)


def test_samples_have_the_moments_of_their_law(scaled):
    approximation, x, _, mean, epistemic, noise = scaled
    predictive = predict_linearised(approximation, x[:3])
    samples = np.asarray(predictive.sample(jax.random.key(0), NUM_SAMPLES))
    total = epistemic[:3] + noise
    std = np.sqrt(np.diagonal(total, axis1=1, axis2=2))
    white = (samples - mean[:3]) / std
    # Monte-Carlo errors of a mean, 1/√n, and of a correlation, at most √(2/n); five of each.
    np.testing.assert_allclose(white.mean(0), 0, atol=5 / np.sqrt(NUM_SAMPLES))
    between = np.einsum("sni,smj->nimj", white, white) / NUM_SAMPLES
    wanted = np.zeros((3, 2, 3, 2))  # points are independent
    wanted[np.arange(3), :, np.arange(3)] = total / std[:, :, None] / std[:, None, :]
    np.testing.assert_allclose(between, wanted, atol=5 * np.sqrt(2 / NUM_SAMPLES))


def test_an_inferred_scale_is_taken_at_the_mean(x64, gaussian_over):
    posterior = known.inferred_noise().posterior
    approximation = gaussian_over(posterior)
    predictive = predict_linearised(approximation, np.array([[0.5], [2.0]]))
    scale = posterior.model.place(approximation.mean).parameters.likelihood["scale"]
    np.testing.assert_allclose(predictive.aleatoric_std, [scale, scale], rtol=1e-12)
    weight = int(approximation.layout.places("network/layer0/weight").start)
    variance = approximation.covariance.diagonal()[weight]
    np.testing.assert_allclose(predictive.epistemic_std, np.sqrt(variance) * np.array([0.5, 2.0]), rtol=1e-9)


def test_the_jacobian_runs_through_the_priors_coordinates(x64, gaussian_over):
    prior = ws.priors.Hierarchical(ws.priors.HalfNormal(1.0))
    model = ws.Model(ws.networks.MLP(hidden=(4,)), ws.likelihoods.Categorical(num_classes=3), prior)
    x = np.random.default_rng(2).normal(2, 3, size=(6, 2))
    batch = ws.Batch(x, np.arange(6) % 3, ws.data.Scaling.fit(x, np.arange(6) % 3, "classification"))
    posterior = model.condition(batch)
    approximation = gaussian_over(posterior)

    def outputs(vector):
        parameters = posterior.model.place(approximation.layout.unflatten(jnp.asarray(vector))).parameters
        return np.asarray(posterior.model.network.apply(parameters.network, posterior.x))

    centre, step = np.asarray(approximation.location), 1e-5
    units = np.eye(len(centre))
    columns = [(outputs(centre + step * unit) - outputs(centre - step * unit)) / (2 * step) for unit in units]
    jacobian, root = np.stack(columns, axis=2), np.asarray(approximation.covariance.root_matrix)
    function = function_gaussian(approximation, x)
    np.testing.assert_allclose(function.mean, outputs(centre), rtol=1e-12)
    # Central differences err by step² f‴/6 ~ 1e-10 and by rounding/step ~ 1e-11.
    exact = jacobian @ root @ root.T @ jacobian.transpose(0, 2, 1)
    np.testing.assert_allclose(function.covariance, exact, rtol=1e-7, atol=1e-8)
    assert np.min(np.linalg.eigvalsh(function.covariance)) > -1e-12


def test_one_point_at_a_time_gives_the_same_numbers(scaled):
    approximation, x, *_ = scaled
    whole, single = function_gaussian(approximation, x), function_gaussian(approximation, x, memory=1)
    np.testing.assert_allclose(single.mean, whole.mean, rtol=1e-12)
    np.testing.assert_allclose(single.covariance, whole.covariance, rtol=1e-12, atol=1e-15)
    assert predict_linearised(approximation, x, memory=1).mean.shape == (30, 2)


@pytest.mark.parametrize("memory", [2**10, 2**18, 2**26])
def test_jacobians_keep_to_their_memory(memory):
    network, x = ws.networks.MLP(hidden=(64,), outputs=10), np.zeros((1000, 8), "f4")
    params = jax.eval_shape(network.init, jax.random.key(0), x)
    plan = make_jacobian_plan(network, params, x, row_bytes=4 * 1226, memory=memory)
    assert plan.chunk_size == 1 or 10 * 4 * 1226 * plan.chunk_size <= memory / 4
    assert plan.chunk_size in (1, 128) or 10 * 4 * 1226 * plan.chunk_size > memory / 8
    assert [n for points in plan.chunks for n in range(points.start, points.stop)] == list(range(1000))


def test_scores_of_a_regression_are_those_of_a_normal(linear):
    problem, approximation, _ = linear
    predictive = predict_linearised(approximation, problem.x)
    mean, std = np.asarray(predictive.mean), np.asarray(predictive.std)
    z = (problem.y - mean) / std
    crps = std * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
    scores = ws.scores(predictive, problem.y)
    np.testing.assert_allclose(scores["nll"], -np.mean(stats.norm.logpdf(problem.y, mean, std)), rtol=1e-9)
    np.testing.assert_allclose(scores["crps"], crps.mean(), rtol=1e-4)
    np.testing.assert_allclose(scores["rmse"], np.sqrt(np.mean((problem.y - mean) ** 2)), rtol=1e-9)
    assert scores["coverage_90"] == np.mean(np.abs(z) < stats.norm.ppf(0.95))


def test_arguments_that_do_not_fit(linear, unchecked):
    _, approximation, x = linear
    draws = approximation.sample(jax.random.key(0), 2)
    with pytest.raises(TypeError, match="`approximation` of predict_linearised must be a Gaussian, got Draws"):
        predict_linearised(draws, x)
    with pytest.raises(ValueError, match="`link` of predict_linearised must be a known name, got 'probbit'. Did you"):
        predict_linearised(approximation, x, link="probbit")
    with pytest.raises(TypeError, match="`link` of predict_linearised must be a Link or its name, got float"):
        predict_linearised(approximation, x, link=0.5)
    with pytest.raises(ValueError, match=r"`x` of predict_linearised must have shape \(point, 3\), got \(21, 2\)"):
        predict_linearised(approximation, x[:, :2])
    with pytest.raises(ValueError, match="`memory` of predict_linearised must be at least 1"):
        predict_linearised(approximation, x, memory=0)
    with pytest.raises(TypeError, match="`key` of FunctionSamples must be a typed random key, got int"):
        FunctionSamples(0)
    for link in ("probit", "bridge"):
        with pytest.raises(ValueError, match="must be used with the likelihood Categorical or Bernoulli, got Gaussian"):
            predict_linearised(approximation, x, link=link)


@pytest.mark.parametrize(
    "likelihood", [ws.likelihoods.Poisson(), ws.likelihoods.StudentT(), ws.likelihoods.HeteroscedasticGaussian()]
)
def test_likelihoods_without_a_closed_form_ask_for_samples(likelihood, gaussian_over):
    model = ws.Model(ws.networks.MLP(hidden=()), likelihood, ws.priors.Normal())
    approximation = gaussian_over(model.condition(ws.Batch(np.zeros((4, 1)), np.ones(4))))
    name = type(likelihood).__name__
    with pytest.raises(ValueError, match=f"must be given for {name}, got None. Pass `link=FunctionSamples"):
        predict_linearised(approximation, np.zeros((1, 1)))
    with pytest.raises(ValueError, match=f"Exact must be used with the likelihood Gaussian, got {name}"):
        predict_linearised(approximation, np.zeros((1, 1)), link=Exact())


def test_numbers_that_cannot_be_used_are_named(table_gaussian):
    build = lambda mean, spread: table_gaussian(
        np.full((1, 2), mean), 1e8 * (np.ones((2, 2)) + spread * np.eye(2)), ws.likelihoods.Gaussian(1e-3), [[0.0, 0.0]]
    )
    with pytest.raises(ValueError, match="must be positive definite, got 1 points where it is not"):
        predict_linearised(build(0.0, 1e-12), [[0]])
    with pytest.raises(ValueError, match="must be finite at points 0 to 0, got 2 numbers that are not"):
        predict_linearised(build(np.nan, 1.0), [[0]])
