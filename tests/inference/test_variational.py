"""Variational methods against exact posteriors, quadrature and an independent optimiser."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats
from tests.known import badly_scaled, inferred_noise, linear

import weightscape as ws
from weightscape.core import InputError
from weightscape.inference import METHODS, Blocks, Diagonal, Full, Gaussian, MeanField


@pytest.fixture(autouse=True)
def _double(x64):
    """Exactness is claimed in double precision."""


def dense(gaussian: Gaussian) -> np.ndarray:
    size = gaussian.layout.size
    return np.asarray(jax.vmap(gaussian.covariance.times)(jnp.eye(size)))


@pytest.mark.parametrize("make", [linear, badly_scaled])
def test_layerwise_is_the_exact_posterior_of_a_linear_model(make):
    known = make()
    q = ws.LayerwiseVI().run(jax.random.key(0), known.posterior)
    # Path gradients have no noise at the optimum, and mirrored draws none in the mean, so training converges.
    deviation = (np.asarray(q.location) - known.mean) / np.sqrt(np.diag(known.covariance))
    assert np.abs(deviation).max() < 1e-9
    whiten = np.linalg.inv(np.linalg.cholesky(known.covariance))
    assert np.abs(whiten @ dense(q) @ whiten.T - np.eye(3)).max() < 1e-4
    assert isinstance(q.covariance, Blocks) and all(isinstance(part, Full) for part in q.covariance.parts)
    # With covariance (I + E) Σ the bound is lower by O(E²).
    assert abs(float(q.log_evidence) - known.log_evidence) < 1e-3
    assert q.estimate.kind == "lower bound" and q.estimate.standard_error < 1e-3
    assert q.facts["kl"] == "Monte Carlo" and q.facts["likelihood_power"] == 1.0


@pytest.mark.parametrize("make", [linear, badly_scaled])
def test_mean_field_is_the_closed_form_of_a_linear_model(make):
    known = make()
    q = ws.MeanFieldVI(num_samples=20, num_evidence_draws=5000).run(jax.random.key(0), known.posterior)
    variance = 1 / np.diag(np.linalg.inv(known.covariance))
    assert np.abs((np.asarray(q.location) - known.mean) / np.sqrt(variance)).max() < 1e-9
    # Noise in the gradient of log s stays, as q cannot follow correlations; twelve keys erred by 0.035 at most.
    np.testing.assert_allclose(q.covariance.diagonal(), variance, rtol=0.1)
    assert isinstance(q.covariance, Diagonal)
    # KL(q ‖ posterior) = ½ (log |Σ| − Σ log v) at the optimum, and larger by about ½ Σ (δ log s)² beside it.
    bound = known.log_evidence - 0.5 * (np.linalg.slogdet(known.covariance)[1] - np.log(variance).sum())
    error = q.estimate.standard_error
    assert error < 0.05
    assert abs(q.estimate.value - bound) < 5 * error + 0.005


class Grid(NamedTuple):
    """A posterior of two weights on a fine grid."""

    posterior: ws.Posterior
    log_density: object
    log_evidence: float
    mean: np.ndarray
    covariance: np.ndarray


def logistic() -> Grid:
    """Twelve points of two classes, w ~ N(0, 1.5²): skewed and correlated."""
    generator = np.random.default_rng(3)
    x = generator.normal(size=(12, 2)) @ np.array([[1.0, 0.9], [0.0, 0.7]])
    y = (generator.uniform(size=12) < 1 / (1 + np.exp(-x @ np.array([1.5, 1.0])))).astype(int)

    def log_density(w):
        z = w @ x.T
        return np.sum(y * z - np.logaddexp(0, z), axis=-1) + stats.norm.logpdf(w, scale=1.5).sum(axis=-1)

    side = np.linspace(-9, 9, 361)
    both = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1)
    logs = log_density(both)
    mass, cell = np.exp(logs - logs.max()), (side[1] - side[0]) ** 2
    log_evidence = logs.max() + np.log(mass.sum() * cell)
    mass /= mass.sum()
    mean = np.einsum("ij,ijk->k", mass, both)
    covariance = np.einsum("ij,ijk,ijl->kl", mass, both - mean, both - mean)
    model = ws.Model(ws.networks.MLP(hidden=(), bias=False), ws.likelihoods.Bernoulli(), ws.priors.Normal(1.5))
    return Grid(model.condition(ws.Batch(x, y)), log_density, log_evidence, mean, covariance)


def best_gaussian(log_density) -> tuple[np.ndarray, np.ndarray, float]:
    """The Gaussian of largest ELBO, by Gauss–Hermite quadrature and a general optimiser."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(30)
    white = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    mass = np.outer(weights, weights).ravel() / weights.sum() ** 2

    def parts(numbers):
        return numbers[:2], np.array([[np.exp(numbers[2]), 0], [numbers[4], np.exp(numbers[3])]])

    def negative(numbers):
        mean, root = parts(numbers)
        entropy = numbers[2] + numbers[3] + 1 + np.log(2 * np.pi)
        return -(mass @ log_density(mean + white @ root.T) + entropy)

    found = optimize.minimize(negative, np.zeros(5), method="BFGS", options={"gtol": 1e-9})
    mean, root = parts(found.x)
    return mean, root @ root.T, -found.fun


def test_layerwise_is_the_best_gaussian_for_logistic_regression():
    grid = logistic()
    mean, covariance, best = best_gaussian(grid.log_density)
    q = ws.LayerwiseVI(num_samples=10, num_evidence_draws=4000).run(jax.random.key(1), grid.posterior)
    spread = np.sqrt(np.diag(covariance))
    # Training noise: twelve keys ended within 0.02 standard deviations and 0.01 of the covariance.
    assert np.abs((np.asarray(q.location) - mean) / spread).max() < 0.05
    whiten = np.linalg.inv(np.linalg.cholesky(covariance))
    assert np.abs(whiten @ dense(q) @ whiten.T - np.eye(2)).max() < 0.05
    error = q.estimate.standard_error
    assert error < 0.01
    assert abs(q.estimate.value - best) < 5 * error + 0.005
    # The bound lies below the evidence, by the divergence of the skewed posterior from the best Gaussian.
    assert 0.005 < grid.log_evidence - best < 0.1
    assert q.estimate.value < grid.log_evidence + 5 * error
    assert np.abs((np.asarray(q.location) - grid.mean) / np.sqrt(np.diag(grid.covariance))).max() < 0.1
    np.testing.assert_allclose(np.diag(dense(q)), np.diag(grid.covariance), rtol=0.3)
    # Weighed draws give the evidence itself.
    weighed = q.evidence(jax.random.key(2), 4000)
    assert abs(weighed.value - grid.log_evidence) < 5 * weighed.standard_error < 0.05


PRIORS = {
    "laplace": (ws.priors.Laplace(0.5), stats.laplace(scale=0.5)),
    "student": (ws.priors.StudentT(3.0, 0.5), stats.t(3.0, scale=0.5)),
    "normal": (ws.priors.Normal(0.7), stats.norm(scale=0.7)),
}
FAMILIES = {
    "normal": (ws.families.Normal(), stats.norm()),
    "logistic": (ws.families.Logistic(), stats.logistic()),
    "student": (ws.families.StudentT(5.0), stats.t(5.0)),
}


@pytest.mark.parametrize(("prior", "family"), [("laplace", "normal"), ("student", "logistic"), ("normal", "student")])
def test_mean_field_of_any_family_under_any_prior_is_the_best_by_quadrature(prior, family):
    (ours, theirs), (our_family, their_family) = PRIORS[prior], FAMILIES[family]
    generator = np.random.default_rng(2)
    x = generator.normal(size=6)
    y = 0.4 * x + generator.normal(size=6)
    log_density = lambda w: theirs.logpdf(w) + stats.norm.logpdf(y, w[..., None] * x, 1.0).sum(axis=-1)
    w = np.linspace(-12, 12, 12001)
    log_evidence = np.log(np.sum(np.exp(log_density(w))) * (w[1] - w[0]))
    z = np.linspace(-60, 60, 6001)
    mass = their_family.pdf(z) * (z[1] - z[0])

    def negative(numbers):
        return -(mass @ log_density(numbers[0] + np.exp(numbers[1]) * z) + their_family.entropy() + numbers[1])

    found = optimize.minimize(negative, np.array([0.1, -1.0]), method="Nelder-Mead", options={"xatol": 1e-6})
    model = ws.Model(ws.networks.MLP(hidden=(), bias=False), ws.likelihoods.Gaussian(1.0), ours)
    posterior = model.condition(ws.Batch(x[:, None], y))
    method = ws.MeanFieldVI(family=our_family, num_samples=50, num_evidence_draws=4000)
    q = method.run(jax.random.key(0), posterior)
    scale = np.exp(found.x[1])
    assert abs(float(q.location[0]) - found.x[0]) < 0.03 * scale
    # Scale and standard deviation differ by the family's own.
    spread = float(np.sqrt(jax.tree.leaves(q.variance)[0]).squeeze())
    assert abs(spread / (scale * their_family.std()) - 1) < 0.03
    error = q.estimate.standard_error
    assert abs(q.estimate.value + found.fun) < 5 * error + 0.002
    assert q.estimate.value < log_evidence + 5 * error < log_evidence + 0.1
    assert isinstance(q, Gaussian if family == "normal" else MeanField)


def test_inferred_noise_is_approximated_with_the_weights():
    known = inferred_noise()
    q = ws.LayerwiseVI(num_samples=20).run(jax.random.key(0), known.posterior)
    assert len(q.covariance.parts) == 2
    draws = q.sample(jax.random.key(1), 4000)
    sigma = np.asarray(draws.params.likelihood["scale"])[0]
    w = np.asarray(draws.params.network["layer0"]["weight"])[0, :, 0, 0]
    # The posterior of σ is skewed; its log-normal approximation is close in mean and somewhat narrow.
    assert abs(w.mean() - known.mean[0]) < 0.1 * np.sqrt(known.covariance[0, 0])
    assert abs(sigma.mean() - known.mean[1]) < 0.25 * np.sqrt(known.covariance[1, 1])
    assert 0.6 < sigma.std() / np.sqrt(known.covariance[1, 1]) < 1.1


def test_a_tempered_target_has_its_own_exact_answer():
    known, beta, gamma = linear(), 0.5, 2.0
    tempered = known.posterior.tempered(likelihood=beta, prior=gamma)
    q = ws.LayerwiseVI().run(jax.random.key(0), tempered)
    precision = beta * known.x.T @ known.x / known.noise**2 + gamma * np.eye(3)
    mean = np.linalg.solve(precision, beta * known.x.T @ known.y / known.noise**2)
    np.testing.assert_allclose(q.location, mean, atol=1e-9)
    root = np.linalg.cholesky(precision)
    assert np.abs(root.T @ dense(q) @ root - np.eye(3)).max() < 1e-4
    assert (q.facts["likelihood_power"], q.facts["prior_power"]) == (beta, gamma)
    assert q.estimate.standard_error < 1e-3


def test_minibatches_and_warm_up_reach_the_neighbourhood():
    known = linear()
    q = ws.MeanFieldVI(batch_size=10, kl_warmup=500).run(jax.random.key(0), known.posterior)
    variance = 1 / np.diag(np.linalg.inv(known.covariance))
    deviation = np.abs((np.asarray(q.location) - known.mean) / np.sqrt(variance)).max()
    assert 1e-6 < deviation < 1.0  # and not zero, or no minibatch was drawn
    np.testing.assert_allclose(q.covariance.diagonal(), variance, rtol=0.3)
    assert q.facts["kl"] == "closed form" and q.facts["kl_warmup"] == 500


def test_training_starts_where_it_is_told():
    posterior = linear().posterior
    mode = ws.MAP(num_steps=2000).run(jax.random.key(0), posterior)
    still = ws.MeanFieldVI(num_steps=1, learning_rate=1e-12, initial_scale=0.3)
    where = np.asarray(mode.params.network["layer0"]["weight"]).ravel()
    first = still.run(jax.random.key(1), posterior, init=mode)
    np.testing.assert_allclose(first.location, where, atol=1e-9)
    np.testing.assert_allclose(first.covariance.scale, 0.3, atol=1e-9)
    again = still.run(jax.random.key(2), posterior, init=first)  # the mean of an approximation, not a draw
    np.testing.assert_allclose(again.location, where, atol=1e-9)
    before = still.run(jax.random.key(1), posterior, init=ws.MAP(num_steps=2000))
    np.testing.assert_allclose(before.location, where, atol=1e-3)


def test_names_and_errors():
    assert METHODS["vi"] is METHODS["meanfieldvi"] is ws.MeanFieldVI and METHODS["layerwisevi"] is ws.LayerwiseVI
    posterior = linear().posterior
    laplace = ws.Model(ws.networks.MLP(hidden=()), ws.likelihoods.Gaussian(0.3), ws.priors.Laplace(1.0))
    discrete = ws.Model(
        ws.networks.MLP(hidden=()), ws.likelihoods.Gaussian(0.3), ws.priors.Discrete((-1.0, 1.0), (0.5, 0.5))
    )
    batch = ws.Batch(linear().x, linear().y)
    wide = ws.Model(ws.networks.MLP(hidden=(20_000,)), ws.likelihoods.Gaussian(0.3), ws.priors.Normal(1.0))
    few = {"num_steps": 10, "num_evidence_draws": 2}
    cases = [
        (lambda: ws.MeanFieldVI(learning_rate=0.0), "`learning_rate` of MeanFieldVI must be positive"),
        (lambda: ws.LayerwiseVI(num_steps=10, kl_warmup=10), "`kl_warmup` of LayerwiseVI must be below"),
        (lambda: ws.LayerwiseVI(num_evidence_draws=1), "`num_evidence_draws` of LayerwiseVI must be at least 2"),
        (lambda: ws.MeanFieldVI(batch_size=0), "`batch_size` of MeanFieldVI must be at least 1"),
        (lambda: ws.MeanFieldVI(initial_scale=-1.0), "`initial_scale` of MeanFieldVI must be positive"),
        (lambda: ws.families.StudentT(2.0), "`degrees` of the family StudentT must be above 2"),
        (
            lambda: ws.MeanFieldVI(family=ws.families.Laplace(), estimator=ws.LocalReparameterised()),
            "`family` of MeanFieldVI with LocalReparameterised.. must be Normal.., got Laplace",
        ),
        (
            lambda: ws.MeanFieldVI(**few, kl=ws.ClosedForm()).run(jax.random.key(0), laplace.condition(batch)),
            "must have a prior of Normal or FanInNormal, got Laplace. Use `kl=MonteCarlo",
        ),
        (
            lambda: ws.LayerwiseVI(**few).run(jax.random.key(0), discrete.condition(batch)),
            "LayerwiseVI follows the gradient",
        ),
        (
            lambda: ws.LayerwiseVI(**few).run(jax.random.key(0), wide.condition(batch)),
            "at most 11585 weights, got 80000 in network/layer0, whose factor would take 47.7 GiB. Use MeanFieldVI",
        ),
        (
            lambda: ws.MeanFieldVI(**few, learning_rate=1e300).run(jax.random.key(0), posterior),
            "The bound must be finite after training, got non-finite values in 2 of 2 draws. Lower `learning_rate`",
        ),
    ]
    for make, message in cases:
        with pytest.raises(InputError, match=message):
            make()
