"""NeuralLinear against exact linear models, quadrature and derivatives taken by other means."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import logsumexp
from tests.known import linear

import weightscape as ws
from weightscape.core import InputError, InputTypeError, Silent
from weightscape.inference import METHODS, Gaussian, MixtureOfGaussians, load_approximation
from weightscape.posterior import Parameters

TAKEN = ws.NeuralLinear()


@pytest.fixture(autouse=True)
def _double(x64):
    """Exactness is claimed in double precision."""


def dense(covariance) -> np.ndarray:
    return np.stack([np.asarray(covariance.times(row)) for row in jnp.eye(covariance.size)])


def point(posterior, seed: int = 0, log_density: float = 0.0, **likelihood) -> ws.Draws:
    """Random weights as one draw, to be taken as they are."""
    generator = np.random.default_rng(seed)
    like = posterior.model.parameters_like(posterior.x)
    network = jax.tree.map(lambda leaf: generator.normal(size=(1, 1, *leaf.shape)).astype(leaf.dtype), like.network)
    own = {name: np.asarray(value)[None, None] for name, value in likelihood.items()}
    known = (posterior.model, posterior.scaling, posterior.example)
    return ws.Draws(Parameters(network, own, ()), np.full((1, 1), log_density), *known)


def test_a_linear_model_is_solved_exactly():
    known = linear()
    made = TAKEN.run(jax.random.key(0), known.posterior, init=point(known.posterior))
    np.testing.assert_allclose(np.ravel(made.mean.network["layer0"]["weight"]), known.mean, rtol=1e-10)
    np.testing.assert_allclose(dense(made.covariance), known.covariance, rtol=1e-9)
    np.testing.assert_allclose(made.log_evidence, known.log_evidence, rtol=1e-10)
    assert made.estimate.kind == "exact" and made.facts["noise_from"] == "fixed"
    assert METHODS["neurallinear"] is ws.NeuralLinear


@pytest.mark.parametrize(("beta", "gamma", "scaled"), [(1.0, 1.0, False), (0.4, 1.7, True)])
def test_density_over_density_is_the_evidence_everywhere(beta, gamma, scaled):
    """log p(D, θ) − log q(θ) is log Z at every θ where q is exact: with a bias, in original units, tempered or not."""
    generator = np.random.default_rng(0)
    x, y = 5 + 3 * generator.normal(size=(25, 2)), 40 + 9 * generator.normal(size=(25, 3))
    scaling = ws.data.from_arrays(x, y, test_fraction=0.2).train.scaling if scaled else None
    prior = ws.priors.ByPath({"*/bias": ws.priors.Normal(8.0), "*": ws.priors.Normal(0.5)})
    noise = ws.likelihoods.Gaussian(np.array([0.3, 1.0, 2.0]))
    posterior = ws.Model(ws.networks.MLP(hidden=()), noise, prior).condition(ws.Batch(x, y, scaling))
    posterior = posterior.tempered(likelihood=beta, prior=gamma)
    made = TAKEN.run(jax.random.key(0), posterior, init=point(posterior))
    draws = made.sample(jax.random.key(1), 20)
    ratio = np.asarray(draws.log_density - draws.log_proposal)
    np.testing.assert_allclose(ratio, float(made.log_evidence), rtol=1e-9)


class Hidden(NamedTuple):
    """A network with a hidden layer, two outputs, scaled data; its last layer in closed form."""

    posterior: ws.Posterior
    start: ws.Draws
    means: np.ndarray
    covariances: list[np.ndarray]
    log_evidence: float


def by_path() -> ws.priors.ByPath:
    parts = {"layer0/*": ws.priors.Laplace(0.5), "*/bias": ws.priors.Normal(0.3), "*": ws.priors.Normal(2.0)}
    return ws.priors.ByPath(parts)


PRIORS = {  # with the scales of the last weight and bias
    "normal": (lambda: ws.priors.Normal(0.7), 0.7, 0.7),
    "by leaf": (lambda: ws.priors.Normal({"layer0": 1.0, "layer1": {"weight": 0.4, "bias": 2.5}}), 0.4, 2.5),
    "fan-in": (lambda: ws.priors.FanInNormal(1.4, 0.6), 1.4 / 2, 0.6),
    "by path": (by_path, 2.0, 0.3),
}


def hidden(make_prior, weight_scale: float, bias_scale: float) -> Hidden:
    """Targets of both outputs are jointly normal given the features, in original units."""
    generator = np.random.default_rng(1)
    x = 2 + generator.normal(size=(30, 3)) * np.array([1.0, 5.0, 0.2])
    y = np.stack([3 * np.sin(x[:, 0]), 50 + x[:, 1]], axis=1) + 0.1 * generator.normal(size=(30, 2))
    scaling = ws.data.from_arrays(x, y, test_fraction=0.2).train.scaling
    noise = np.array([0.2, 0.6])
    model = ws.Model(ws.networks.MLP(hidden=(4,)), ws.likelihoods.Gaussian(noise), make_prior())
    posterior = model.condition(ws.Batch(x, y, scaling))
    start = point(posterior)
    first = jax.tree.map(lambda leaf: leaf[0, 0], start.params.network["layer0"])
    inputs = (x - np.asarray(scaling.x_mean)) / np.asarray(scaling.x_scale)
    features = np.column_stack([np.tanh(inputs @ first["weight"] + first["bias"]), np.ones(30)])
    variances = np.diag([weight_scale**2] * 4 + [bias_scale**2])
    means, covariances, log_evidence = [], [], 0.0
    for i in range(2):
        shift, scale = float(scaling.y_mean[i]), float(scaling.y_scale[i])
        target = (y[:, i] - shift) / scale
        covariances.append(np.linalg.inv(features.T @ features / noise[i] ** 2 + np.linalg.inv(variances)))
        means.append(covariances[i] @ features.T @ target / noise[i] ** 2)
        marginal = scale**2 * (features @ variances @ features.T + noise[i] ** 2 * np.eye(30))
        log_evidence += stats.multivariate_normal(np.full(30, shift), marginal).logpdf(y[:, i])
    return Hidden(posterior, start, np.stack(means, axis=1), covariances, log_evidence)


@pytest.mark.parametrize("name", PRIORS)
def test_the_last_layer_is_the_closed_form_on_its_features(name):
    known = hidden(*PRIORS[name])
    made = TAKEN.run(jax.random.key(0), known.posterior, init=known.start)
    last = made.mean.network["layer1"]
    np.testing.assert_allclose(np.vstack([last["weight"], last["bias"]]), known.means, rtol=1e-8)
    np.testing.assert_allclose(made.log_evidence, known.log_evidence, rtol=1e-9)
    # Positions run through layer0 (bias, weight), then the bias (2) and the weight (4 × 2) of layer1.
    whole, places = dense(made.covariance), 16 + np.array([[2, 4, 6, 8, 0], [3, 5, 7, 9, 1]])
    for i in range(2):
        np.testing.assert_allclose(whole[np.ix_(places[i], places[i])], known.covariances[i], rtol=1e-8)
        whole[np.ix_(places[i], places[i])] = 0
    assert np.all(whole == 0)  # outputs are independent, the first layer is fixed
    taken = jax.tree.map(lambda leaf: leaf[0, 0], known.start.params.network["layer0"])
    assert jax.tree.all(jax.tree.map(np.array_equal, made.mean.network["layer0"], taken))


def test_draws_have_the_covariance_and_fixed_features():
    known, num = hidden(*PRIORS["normal"]), 20_000
    made = TAKEN.run(jax.random.key(0), known.posterior, init=known.start)
    network = made.sample(jax.random.key(1), num).params.network
    last = np.concatenate([network["layer1"]["weight"][0], network["layer1"]["bias"][0][:, None]], axis=1)
    centred = last - known.means
    for i in range(2):
        covariance = known.covariances[i]
        # Draws are independent: a mean errs by √(S_jj/n), a covariance by √((S_jj S_kk + S_jk²)/n).
        spread = np.sqrt(np.diag(covariance))
        assert np.all(np.abs(centred[:, :, i].mean(axis=0)) < 6 * spread / np.sqrt(num))
        error = np.sqrt((np.outer(spread, spread) ** 2 + covariance**2) / num)
        assert np.all(np.abs(centred[:, :, i].T @ centred[:, :, i] / num - covariance) < 6 * error)
    cross = np.abs(centred[:, :, 0].T @ centred[:, :, 1] / num)
    spreads = [np.sqrt(np.diag(covariance)) for covariance in known.covariances]
    assert np.all(cross < 6 * np.outer(*spreads) / np.sqrt(num))
    assert np.all(np.ptp(network["layer0"]["weight"], axis=1) == 0)
    with pytest.raises(InputError, match="density over all weights"):
        made.evidence(jax.random.key(0), 10)


def gradient_and_precision(made: Gaussian) -> tuple[np.ndarray, np.ndarray]:
    """The gradient and negative Hessian of log p(D, θ) in the weights that vary, by automatic differentiation."""
    places = np.concatenate([np.asarray(where) for where in made.covariance.places])

    def log_density(v):
        return made.posterior.log_density(made.layout.unflatten(made.location.at[places].set(v)))

    at = made.location[places]
    return np.asarray(jax.jit(jax.grad(log_density))(at)), -np.asarray(jax.jit(jax.hessian(log_density))(at))


def block(made: Gaussian) -> np.ndarray:
    places = np.concatenate([np.asarray(where) for where in made.covariance.places])
    return dense(made.covariance)[np.ix_(places, places)]


def classes(likelihood, num_classes: int, network) -> ws.Posterior:
    generator = np.random.default_rng(3)
    x = generator.normal(size=(60, 2)) * np.array([1.0, 20.0]) + np.array([0.0, 7.0])
    y = np.digitize(x[:, 0] + 0.05 * x[:, 1] + 0.5 * generator.normal(size=60), np.linspace(-0.5, 1.2, num_classes - 1))
    scaling = ws.data.from_arrays(x, y, task="classification", test_fraction=0.2).train.scaling
    prior = ws.priors.ByPath({"*/bias": ws.priors.Normal(3.0), "*": ws.priors.Normal(1.5)})
    return ws.Model(network, likelihood, prior).condition(ws.Batch(x, y, scaling))


@pytest.mark.parametrize(
    ("likelihood", "num_classes", "beta", "gamma"),
    [(ws.likelihoods.Categorical(3), 3, 2.0, 0.5), (ws.likelihoods.Bernoulli(), 2, 1.0, 1.0)],
)
def test_over_classes_the_mode_and_the_hessian_are_exact(likelihood, num_classes, beta, gamma):
    posterior = classes(likelihood, num_classes, ws.networks.MLP(hidden=(3,)))
    posterior = posterior.tempered(likelihood=beta, prior=gamma)
    made = TAKEN.run(jax.random.key(0), posterior, init=point(posterior))
    gradient, precision = gradient_and_precision(made)
    # 60 terms of order ten: rounding of 1e-13, measured in the units of the weights' own spread.
    assert np.abs(np.sqrt(np.diag(block(made))) * gradient).max() < 1e-12
    np.testing.assert_allclose(block(made) @ precision, np.eye(len(precision)), atol=1e-9)
    last = made.mean.network["layer1"]
    log_prior = stats.norm.logpdf(last["weight"], scale=1.5).sum() + stats.norm.logpdf(last["bias"], scale=3.0).sum()
    log_joint = beta * float(posterior.log_likelihood(made.mean)) + gamma * log_prior
    log_volume = 0.5 * (len(precision) * np.log(2 * np.pi) - np.linalg.slogdet(precision)[1])
    np.testing.assert_allclose(made.log_evidence, log_joint + log_volume, rtol=1e-11)
    assert made.estimate.kind == "Laplace"


def logistic(num_points: int) -> ws.Posterior:
    generator = np.random.default_rng(2)
    x = generator.normal(size=(num_points, 2)) @ np.array([[1.0, 0.6], [0.0, 0.5]])
    y = (generator.uniform(size=num_points) < 1 / (1 + np.exp(-x @ np.array([1.5, -1.0])))).astype(int)
    model = ws.Model(ws.networks.MLP(hidden=(), bias=False), ws.likelihoods.Bernoulli(), ws.priors.Normal(2.0))
    return model.condition(ws.Batch(x, y))


@pytest.mark.parametrize("num_points", [20, 400])
def test_logistic_regression_against_quadrature(num_points):
    posterior = logistic(num_points)
    made = TAKEN.run(jax.random.key(0), posterior, init=point(posterior))
    x, sign = np.asarray(posterior.x), 2 * np.asarray(posterior.y) - 1

    def negative(w):  # of one w, or of many in columns
        log_prior = -0.5 * np.sum(w**2, axis=0) / 4 - np.log(2 * np.pi * 4)
        return np.logaddexp(0, -(sign * (x @ w).T).T).sum(axis=0) - log_prior

    found = optimize.minimize(negative, np.zeros(2), method="BFGS", options={"gtol": 1e-9})
    mode = np.ravel(made.mean.network["layer0"]["weight"])
    np.testing.assert_allclose(mode, found.x, atol=1e-7)
    # Nine deviations to each side, in the coordinates of the approximation: a smooth integrand that vanishes at the
    # ends is summed to rounding.
    grid = np.linspace(-9, 9, 121)
    white = np.stack(np.meshgrid(grid, grid, indexing="ij")).reshape(2, -1)
    root = np.linalg.cholesky(block(made))
    log_density = -negative(mode[:, None] + root @ white)
    log_cell = 2 * np.log(grid[1] - grid[0]) + np.log(np.diag(root)).sum()
    error = abs(float(made.log_evidence) - logsumexp(log_density) - log_cell)
    # Laplace's error is of order 1/N: 0.9/N and 1.7/N here, 0.04 and 0.004 nats.
    assert 0.2 < error * num_points < 2.5


@pytest.mark.parametrize("num_scales", [1, 2])
def test_tuned_noise_is_the_mode_with_the_last_layer_integrated_out(num_scales):
    generator = np.random.default_rng(6)
    x = generator.normal(size=(30, 2))
    y = np.tanh(x) @ generator.normal(size=(2, 2)) + generator.normal(size=(30, 2)) * np.array([0.2, 0.5])
    likelihood = ws.likelihoods.Gaussian(ws.priors.Gamma(2.0, 3.0), num_scales=num_scales)
    model = ws.Model(ws.networks.MLP(hidden=(3,), bias=False), likelihood, ws.priors.Normal(1.2))
    posterior = model.condition(ws.Batch(x, y))
    start = point(posterior, scale=np.array(1.0) if num_scales == 1 else np.ones(2))
    features = np.tanh(x @ start.params.network["layer0"]["weight"][0, 0])

    def log_evidence(sigmas):
        marginals = [1.44 * features @ features.T + sigma**2 * np.eye(30) for sigma in sigmas]
        return sum(stats.multivariate_normal(np.zeros(30), marginals[i]).logpdf(y[:, i]) for i in range(2))

    def negative(z):  # a density over z = log σ has the Jacobian σ
        sigmas = np.broadcast_to(np.exp(z), 2)
        log_prior = (stats.gamma.logpdf(np.exp(z), 2.0, scale=1 / 3) + z).sum()
        return -log_evidence(sigmas) - log_prior

    best = np.exp(optimize.minimize(negative, np.full(num_scales, -1.0), options={"gtol": 1e-8}).x)
    made = ws.NeuralLinear(tune_noise=True).run(jax.random.key(0), posterior, init=start)
    # At a maximum of curvature of order 30 values agree to 1e-15 × 50 where z differs by √(1e-13/30).
    np.testing.assert_allclose(made.facts["noise"], best, rtol=1e-6)
    np.testing.assert_allclose(np.exp(np.ravel(made.mean.likelihood["scale"])), best, rtol=1e-6)
    at_noise = log_evidence(np.broadcast_to(made.facts["noise"], 2))
    np.testing.assert_allclose(made.log_evidence, at_noise, rtol=1e-9)
    assert made.facts["noise_from"] == "evidence"
    trained = TAKEN.run(jax.random.key(0), posterior, init=start)
    assert trained.facts["noise"] == [1.0] * num_scales and trained.facts["noise_from"] == "training"
    np.testing.assert_allclose(trained.log_evidence, log_evidence(np.ones(2)), rtol=1e-9)


def test_features_of_a_convolution_network():
    generator = np.random.default_rng(7)
    network = ws.networks.ConvNet(channels=(2,), hidden=(3,))
    model = ws.Model(network, ws.likelihoods.Gaussian(0.5), ws.priors.Normal(1.0))
    posterior = model.condition(ws.Batch(generator.normal(size=(12, 6, 6, 1)), generator.normal(size=12)))
    made = TAKEN.run(jax.random.key(0), posterior, init=point(posterior))
    slope = jax.jit(jax.grad(posterior.log_density))(made.mean).network["output"]
    spread = jax.tree.map(jnp.sqrt, made.variance.network["output"])
    steps = jax.tree.map(lambda one, other: np.abs(one * other).max(), slope, spread)
    assert len(jax.tree.leaves(steps)) == 2 and max(jax.tree.leaves(steps)) < 1e-12


def test_single_precision_keeps_its_type():
    with jax.enable_x64(False):
        known = linear()
        made = TAKEN.run(jax.random.key(0), known.posterior, init=point(known.posterior))
        assert {leaf.dtype for leaf in jax.tree.leaves((made.location, made.covariance.parts))} == {
            jnp.dtype("float32")
        }
        deviation = (np.asarray(made.location) - known.mean) / np.sqrt(np.diag(known.covariance))
        assert np.abs(deviation).max() < 1e-4
        assert abs(float(made.log_evidence) - known.log_evidence) < 1e-4


def test_the_draw_of_highest_density_or_the_mean_is_taken():
    posterior = hidden(*PRIORS["normal"]).posterior
    draws = [point(posterior, seed, log_density=value) for seed, value in enumerate((-3.0, 5.0, 2.0))]
    best = draws[1]
    many = TAKEN.run(jax.random.key(0), posterior, init=draws[0].merge(draws[1:]))
    one = TAKEN.run(jax.random.key(0), posterior, init=best)
    np.testing.assert_array_equal(many.location, one.location)
    again = TAKEN.run(jax.random.key(0), posterior, init=one)
    np.testing.assert_allclose(again.location, one.location, rtol=1e-12)
    mixture = MixtureOfGaussians.of([Gaussian.over(posterior, one.mean, ws.inference.Diagonal(np.ones(26)))])
    with pytest.raises(InputTypeError, match="must come from draws or a Gaussian, got MixtureOfGaussians"):
        TAKEN.run(jax.random.key(0), posterior, init=mixture)


class Killed(BaseException):
    """Ends a run at once."""


class Ending(Silent):
    """Ends the run when work begins, at its second chunk, or never; notes what was done."""

    def __init__(self, event=None):
        self.event, self.done = event, []

    def start(self, label, total):
        if self.event == "start":
            raise Killed

    def advance(self, done, facts):
        self.done.append(done)
        if self.event == "second chunk" and len(self.done) == 2:
            raise Killed


def test_stored_runs_are_resumed_and_loaded(tmp_path):
    posterior, key = hidden(*PRIORS["normal"]).posterior, jax.random.key(1)
    method = ws.NeuralLinear(ws.MAP(num_steps=200))
    whole = method.run(key, posterior)
    with pytest.raises(Killed):
        method.run(key, posterior, store=tmp_path, progress=(killed := Ending("second chunk")))
    resumed = method.run(key, posterior, store=tmp_path, progress=(ending := Ending()), resume=True)
    assert ending.done[0] > killed.done[0]  # the features go on from the first chunk, which was recorded
    loaded = method.run(key, posterior, store=tmp_path, resume=True, progress=Ending("start"))
    for other in (resumed, loaded, load_approximation(tmp_path, posterior)):
        assert jax.tree.all(jax.tree.map(np.array_equal, other.bare(), whole.bare()))
        assert other.estimate == whole.estimate
    with pytest.raises(InputError, match="must have the settings"):
        ws.NeuralLinear(ws.MAP(num_steps=210)).run(key, posterior, store=tmp_path, resume=True)


def squashed() -> ws.networks.Function:
    init = lambda key, x: {"weight": jnp.ones((x.shape[1], 1))}
    return ws.networks.Function(init, lambda params, x: jnp.tanh(x @ params["weight"]))


PLAIN = ws.networks.MLP(hidden=(2,))
REFUSED = {
    "likelihood": (PLAIN, ws.likelihoods.Poisson(), ws.priors.Normal(), TAKEN,
                   "must be Gaussian, Categorical or Bernoulli, got Poisson"),
    "prior": (PLAIN, ws.likelihoods.Gaussian(), ws.priors.Laplace(1.0), TAKEN,
              "must be Normal, FanInNormal or ByPath of them for layer1/weight, got Laplace"),
    "prior of the bias": (PLAIN, ws.likelihoods.Gaussian(),
                          ws.priors.ByPath({"*/bias": ws.priors.StudentT(3.0, 1.0), "*": ws.priors.Normal()}), TAKEN,
                          "for layer1/bias, got StudentT"),
    "network": (squashed(), ws.likelihoods.Gaussian(), ws.priors.Normal(), TAKEN, "must end in a linear layer"),
    "noise": (PLAIN, ws.likelihoods.Gaussian(0.5), ws.priors.Normal(), ws.NeuralLinear(tune_noise=True),
              "`tune_noise` must go with a noise that is inferred"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_solved_is_refused_before_training(name):
    network, likelihood, prior, method, message = REFUSED[name]
    posterior = ws.Model(network, likelihood, prior).condition(ws.Batch(np.ones((4, 2)), np.ones(4)))
    with pytest.raises(InputError, match=message):
        method.run(jax.random.key(0), posterior, progress=Ending("start"))
