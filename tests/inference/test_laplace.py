"""Laplace's approximation against exact posteriors, quadrature and brute force."""

import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.known import badly_scaled, linear

import weightscape as ws
from weightscape.core import InputError
from weightscape.draws import point
from weightscape.inference import EvidenceTuning, Gaussian, Laplace, LowRankStructure

KEY = jax.random.key(0)


@pytest.fixture(autouse=True)
def _double(x64):
    """Exactness is claimed in double precision."""


def at_mean(known):
    """The exact mode as a point that was found elsewhere."""
    start = known.posterior.start_position(KEY)
    return point(known.posterior, jax.tree.map(lambda leaf: jnp.asarray(known.mean.reshape(leaf.shape)), start))


def covariance_of(gaussian: Gaussian) -> np.ndarray:
    return np.asarray(jax.vmap(gaussian.covariance.times)(jnp.eye(gaussian.layout.size)))


@pytest.mark.parametrize(
    ("structure", "curvature"),
    [*itertools.product(("full", "by_layer"), ("gauss_newton", "hessian")), ("kronecker", "gauss_newton")],
)
@pytest.mark.parametrize("problem", [linear, badly_scaled])
def test_linear_gaussian_is_exact(problem, structure, curvature):
    known = problem()
    found = Laplace(structure, curvature).run(KEY, known.posterior, init=at_mean(known))
    np.testing.assert_allclose(found.location, known.mean, rtol=1e-9)
    np.testing.assert_allclose(covariance_of(found), known.covariance, rtol=1e-7)
    np.testing.assert_allclose(found.log_evidence, known.log_evidence, rtol=1e-9)
    draws = found.sample(KEY, 100)
    np.testing.assert_allclose(draws.log_density - draws.log_proposal, known.log_evidence, rtol=1e-7)


def test_the_mode_is_found_by_itself():
    known = linear()
    found = Laplace(mode=ws.MAP(num_steps=100)).run(KEY, known.posterior)
    np.testing.assert_allclose(found.location, known.mean, atol=1e-6)
    np.testing.assert_allclose(found.log_evidence, known.log_evidence, atol=1e-9)
    assert found.facts["distance_to_mode"] < 1e-4
    rough = Laplace(mode=ws.MAP(num_steps=100), polish=0).run(KEY, known.posterior)
    # A linear posterior is a parabola: its mode is as far as the Newton step says.
    shift = np.asarray(rough.location) - known.mean
    distance = np.sqrt(shift @ np.linalg.solve(known.covariance, shift))
    np.testing.assert_allclose(rough.facts["distance_to_mode"], distance, rtol=1e-6)
    assert distance > 0.1
    assert found.facts["structure"] == "FullStructure"


@pytest.mark.parametrize("problem", [linear, badly_scaled])
def test_diagonal_has_the_inverse_of_the_precisions_diagonal(problem):
    known = problem()
    found = Laplace("diagonal").run(KEY, known.posterior, init=at_mean(known))
    precision = np.linalg.inv(known.covariance)
    np.testing.assert_allclose(covariance_of(found), np.diag(1 / np.diag(precision)), rtol=1e-9)
    truth = known.log_evidence + 0.5 * (np.linalg.slogdet(precision)[1] - np.sum(np.log(np.diag(precision))))
    np.testing.assert_allclose(found.log_evidence, truth, rtol=1e-9)


def test_low_rank_keeps_the_largest_directions():
    known = badly_scaled()
    found = Laplace(LowRankStructure(rank=2)).run(KEY, known.posterior, init=at_mean(known))
    values, vectors = np.linalg.eigh(known.x.T @ known.x / known.noise**2)
    kept = (vectors[:, 1:] * values[1:]) @ vectors[:, 1:].T
    np.testing.assert_allclose(covariance_of(found), np.linalg.inv(kept + np.eye(3)), rtol=1e-6, atol=1e-12)
    log_determinant = np.linalg.slogdet(kept + np.eye(3))[1]
    exact = np.linalg.slogdet(np.linalg.inv(known.covariance))[1]
    np.testing.assert_allclose(found.log_evidence, known.log_evidence + 0.5 * (exact - log_determinant), rtol=1e-8)


def logistic():
    """Two weights, twelve points, overlapping classes: posterior on a grid."""
    generator = np.random.default_rng(3)
    x = generator.normal(size=(12, 2))
    y = (x @ np.array([1.0, -0.7]) + 0.8 * generator.normal(size=12) > 0).astype(int)
    network, prior = ws.networks.MLP(hidden=(), bias=False), ws.priors.Normal(1.0)
    posterior = ws.Model(network, ws.likelihoods.Bernoulli(), prior).condition(ws.Batch(x, y))
    line = np.linspace(-6, 6, 1201)
    a, b = np.meshgrid(line, line, indexing="ij")
    logits = a[..., None] * x[:, 0] + b[..., None] * x[:, 1]
    log_density = np.sum(np.where(y, -np.logaddexp(0, -logits), -np.logaddexp(0, logits)), axis=-1)
    log_density = log_density + stats.norm.logpdf(a) + stats.norm.logpdf(b)
    mass = np.exp(log_density)
    evidence = np.log(mass.sum() * (line[1] - line[0]) ** 2)
    both = np.stack([a, b])
    mean = np.einsum("kij,ij->k", both, mass) / mass.sum()
    centred = both - mean[:, None, None]
    covariance = np.einsum("kij,lij,ij->kl", centred, centred, mass) / mass.sum()
    return posterior, x, evidence, mean, covariance


def test_logistic_regression_is_near_quadrature():
    posterior, x, evidence, mean, covariance = logistic()
    found = Laplace("full", "hessian").run(KEY, posterior)
    assert found.facts["distance_to_mode"] < 1e-2
    # At the mode the precision is Σ p(1 − p) x xᵀ + I.
    p = 1 / (1 + np.exp(-x @ np.asarray(found.location)))
    np.testing.assert_allclose(covariance_of(found), np.linalg.inv((x.T * (p * (1 - p))) @ x + np.eye(2)), rtol=1e-6)
    # Laplace errs in the second order of a skewed posterior: 5 % of a nat, a fifth of a standard deviation here.
    assert abs(float(found.log_evidence) - evidence) < 0.1
    assert np.all(np.abs(found.location - mean) < 0.35 * np.sqrt(np.diag(covariance)))
    assert np.all(np.abs(covariance_of(found) / covariance - 1) < 0.35)
    # Weighed draws are exact whatever the approximation errs by.
    weighed = found.evidence(KEY, 4000)
    assert abs(weighed.value - evidence) < 5 * weighed.standard_error < 0.05
    assert weighed.pareto_k < 0.7


def small(likelihood, targets, *, network=None, prior=None):
    generator = np.random.default_rng(1)
    x = generator.normal(size=(9, 3))
    network = network or ws.networks.MLP(hidden=(4,), activation="tanh")
    return ws.Model(network, likelihood, prior or ws.priors.Normal(0.8)).condition(ws.Batch(x, targets(generator, x)))


def test_by_layer_is_the_blocks_of_the_full_precision():
    posterior = small(ws.likelihoods.Categorical(3), lambda g, x: g.integers(0, 3, 9))
    start = point(posterior, posterior.start_position(KEY))
    full, blocks = (Laplace(name).run(KEY, posterior, init=start) for name in ("full", "by_layer"))
    precision = np.linalg.inv(covariance_of(full))
    found = np.linalg.inv(covariance_of(blocks))
    sizes = [3 * 4 + 4, 4 * 3 + 3]
    inside = np.zeros_like(precision, bool)
    inside[: sizes[0], : sizes[0]] = True
    inside[sizes[0] :, sizes[0] :] = True
    np.testing.assert_allclose(found, np.where(inside, precision, 0), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("weights", ["last_layer", pytest.param("layer1/*", marks=pytest.mark.slow)])
def test_some_weights_have_the_block_of_the_precision(weights):
    posterior = small(ws.likelihoods.Gaussian(0.4), lambda g, x: g.normal(size=9))
    start = point(posterior, posterior.start_position(KEY))
    full = np.linalg.inv(covariance_of(Laplace("full").run(KEY, posterior, init=start)))
    found = Laplace("full", weights=weights).run(KEY, posterior, init=start)
    covariance = covariance_of(found)
    np.testing.assert_allclose(covariance[16:, 16:], np.linalg.inv(full[16:, 16:]), rtol=1e-8)
    np.testing.assert_array_equal(covariance[:16], 0)
    with pytest.raises(InputError, match="density over all weights"):
        found.evidence(KEY, 10)


def test_evidence_of_the_last_layer_is_that_of_the_linear_model_on_its_features():
    posterior = small(ws.likelihoods.Gaussian(0.4), lambda g, x: g.normal(size=9), prior=ws.priors.Normal(0.7))
    position = posterior.start_position(KEY)
    first = position.network["layer0"]
    features = np.tanh(np.asarray(posterior.x) @ np.asarray(first["weight"]) + np.asarray(first["bias"]))
    features = np.concatenate([features, np.ones((9, 1))], axis=1)
    y, covariance = np.asarray(posterior.y), np.linalg.inv(features.T @ features / 0.16 + np.eye(5) / 0.49)
    mean = covariance @ features.T @ y / 0.16
    position.network["layer1"] = {"weight": jnp.asarray(mean[:4, None]), "bias": jnp.asarray(mean[4:])}
    found = Laplace(weights="last_layer").run(KEY, posterior, init=point(posterior, position))
    truth = stats.multivariate_normal(np.zeros(9), 0.16 * np.eye(9) + 0.49 * features @ features.T).logpdf(y)
    np.testing.assert_allclose(found.log_evidence, truth, rtol=1e-9)


def test_a_prior_that_couples_weights_is_exact_in_full():
    known, covariance = linear(), np.array([[1.0, 0.5, 0.1], [0.5, 1.2, 0.0], [0.1, 0.0, 0.6]])
    prior = ws.priors.FullNormal(covariance)
    model = ws.Model(ws.networks.MLP(hidden=(), bias=False), ws.likelihoods.Gaussian(known.noise), prior)
    posterior = model.condition(ws.Batch(known.x, known.y))
    precision = known.x.T @ known.x / known.noise**2 + np.linalg.inv(covariance)
    mean = np.linalg.solve(precision, known.x.T @ known.y / known.noise**2)
    start = posterior.start_position(KEY)
    here = point(posterior, jax.tree.map(lambda leaf: jnp.asarray(mean.reshape(leaf.shape)), start))
    found = Laplace("full").run(KEY, posterior, init=here)
    np.testing.assert_allclose(covariance_of(found), np.linalg.inv(precision), rtol=1e-8)
    marginal = known.noise**2 * np.eye(40) + known.x @ covariance @ known.x.T
    truth = stats.multivariate_normal(np.zeros(40), marginal).logpdf(known.y)
    np.testing.assert_allclose(found.log_evidence, truth, rtol=1e-9)
    with pytest.raises(InputError, match="must treat each weight alone, got one that couples weights"):
        Laplace("diagonal").run(KEY, posterior, init=here)


def test_an_indefinite_hessian_is_refused_with_its_eigenvalue():
    posterior = small(ws.likelihoods.Gaussian(0.1), lambda g, x: 3 * np.sin(3 * x[:, 0]), prior=ws.priors.Normal(3.0))
    start = point(posterior, posterior.start_position(KEY))
    position = posterior.start_position(KEY)
    flat, unravel = jax.flatten_util.ravel_pytree(position)
    hessian = jax.jit(jax.hessian(lambda v: -posterior.log_density(unravel(v))))(flat)
    least = np.linalg.eigvalsh(hessian)[0]
    assert least < 0
    with pytest.raises(InputError, match=re.escape(f"a smallest eigenvalue of {least:.3g}")):
        Laplace("full", "hessian").run(KEY, posterior, init=start)


def test_inferred_noise_is_approximated_with_the_weights():
    posterior = small(ws.likelihoods.Gaussian(ws.priors.Gamma(2.0, 2.0)), lambda g, x: g.normal(size=9))
    position = posterior.start_position(KEY)
    found = Laplace("full").run(KEY, posterior, init=point(posterior, position))
    # E[−∂² log p(y)/∂(log σ)²] = 2 a point; the prior of log σ is Gamma with its Jacobian: −∂² = rate · σ.
    where = found.layout.places("likelihood/scale")
    precision = np.linalg.inv(covariance_of(found))[where, where]
    np.testing.assert_allclose(precision, 2 * 9 + 2.0 * 1.0, rtol=1e-8)
    assert np.all(np.asarray(found.sample(KEY, 20).params.likelihood["scale"]) > 0)


@pytest.mark.parametrize("structure", ["full", "kronecker", "diagonal"])
def test_tempered_posteriors_have_their_powers(structure):
    known = linear()
    cold = known.posterior.tempered(likelihood=2.0, prior=3.0)
    found = Laplace(structure).run(KEY, cold, init=at_mean(known))
    precision = 2 * known.x.T @ known.x / known.noise**2 + 3 * np.eye(3)
    truth = np.linalg.inv(np.diag(np.diag(precision)) if structure == "diagonal" else precision)
    np.testing.assert_allclose(covariance_of(found), truth, rtol=1e-7)


def test_a_run_is_kept_and_loaded(tmp_path):
    known = linear()
    method = Laplace("full", mode=ws.MAP(num_steps=200))
    first = method.run(KEY, known.posterior, store=tmp_path)
    again = method.run(KEY, known.posterior, store=tmp_path, resume=True)
    np.testing.assert_array_equal(first.location, again.location)
    assert again.estimate == first.estimate
    loaded = Gaussian.load(tmp_path)
    np.testing.assert_array_equal(covariance_of(loaded), covariance_of(first))
    with pytest.raises(InputError, match="A run continued in"):
        method.run(jax.random.key(1), known.posterior, store=tmp_path, resume=True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Laplace("fulll"), "Did you mean 'full'"),
        (lambda: Laplace(curvature="ggn"), "`curvature` of Laplace must be a known name"),
        (lambda: Laplace(LowRankStructure(rank=0)), "`rank` of LowRankStructure must be at least 1"),
        (lambda: Laplace(LowRankStructure(rank=3)).run(KEY, linear().posterior), "must be below the 3 weights"),
        (lambda: Laplace(weights="layer7/*").run(KEY, linear().posterior), "must match a leaf, got layer7"),
        (lambda: Laplace("kronecker", "hessian").run(KEY, linear().posterior), "got the exact Hessian"),
        (lambda: EvidenceTuning(prior=None), "must choose something"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
