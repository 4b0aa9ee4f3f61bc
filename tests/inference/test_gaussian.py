"""Laws of the Gaussian family: draws, densities, products, divergences and storage, for every covariance structure."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.known import linear

import weightscape as ws
from weightscape.core import InputError
from weightscape.core.facts import Facts
from weightscape.inference import (
    Blocks,
    Diagonal,
    Full,
    Gaussian,
    Kronecker,
    LowRank,
    importance_evidence,
    kl_divergence,
    load_approximation,
)

SIZE = 7


@pytest.fixture(autouse=True)
def _double(x64):
    """Exactness is claimed in double precision."""


def positive_definite(size: int, seed: int) -> np.ndarray:
    """A correlated, badly scaled covariance."""
    generator = np.random.default_rng(seed)
    root = generator.normal(size=(size, size)) * np.geomspace(0.2, 3.0, size)[:, None]
    return root @ root.T + 0.05 * np.eye(size)


def orthogonal(size: int, seed: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]


def diagonal() -> tuple[Diagonal, np.ndarray]:
    scale = np.geomspace(0.1, 5.0, SIZE)
    return Diagonal(scale), np.diag(scale**2)


def stretched() -> tuple[LowRank, np.ndarray]:
    generator = np.random.default_rng(1)
    scale, factor = np.geomspace(0.3, 2.0, SIZE), generator.normal(size=(SIZE, 3))
    return LowRank.of_covariance(jnp.asarray(scale), jnp.asarray(factor)), np.diag(scale**2) + factor @ factor.T


def shrunk() -> tuple[LowRank, np.ndarray]:
    generator = np.random.default_rng(2)
    scale, factor = np.geomspace(0.3, 2.0, SIZE), generator.normal(size=(SIZE, 3))
    factor[:, 2] = 2 * factor[:, 0]  # of rank 2 only
    precision = np.diag(scale**-2) + factor @ factor.T
    return LowRank.of_precision(jnp.asarray(scale), jnp.asarray(factor)), np.linalg.inv(precision)


def kronecker(rows: int = 7, units: int = 1) -> tuple[Kronecker, np.ndarray]:
    generator = np.random.default_rng(3)
    q_rows, q_units = orthogonal(rows, 4), orthogonal(units, 5)
    variances, scale = generator.uniform(0.2, 3.0, (rows, units)), generator.uniform(0.5, 2.0, (rows, units))
    both = np.kron(q_rows, q_units)
    rescale = np.diag(scale.ravel())
    return Kronecker(q_rows, q_units, variances, scale), rescale @ both @ np.diag(variances.ravel()) @ both.T @ rescale


def full_of_covariance() -> tuple[Full, np.ndarray]:
    covariance = positive_definite(SIZE, 6)
    return Full.of_covariance(jnp.asarray(covariance)), covariance


def full_of_precision() -> tuple[Full, np.ndarray]:
    precision = positive_definite(SIZE, 7)
    return Full.of_precision(jnp.asarray(precision)), np.linalg.inv(precision)


def blocks() -> tuple[Blocks, np.ndarray]:
    """A full, a diagonal and a Kronecker block whose weights are interleaved."""
    covariance = positive_definite(2, 8)
    small, dense = kronecker(2, 2)
    places = (np.array([5, 0]), np.array([3]), np.array([1, 6, 2, 4]))
    whole = np.zeros((SIZE, SIZE))
    for part, where in zip((covariance, np.array([[0.49]]), dense), places, strict=True):
        whole[np.ix_(where, where)] = part
    parts = (Full.of_covariance(jnp.asarray(covariance)), Diagonal(np.array([0.7])), small)
    return Blocks(parts, places, SIZE), whole


STRUCTURES = {
    made.__name__: made
    for made in (diagonal, stretched, shrunk, kronecker, full_of_covariance, full_of_precision, blocks)
}
every_structure = pytest.mark.parametrize("make", STRUCTURES.values(), ids=STRUCTURES)


def network_with(*shapes: tuple[int, ...]) -> ws.networks.Function:
    init = lambda key, x: {f"w{i}": jnp.zeros(shape) for i, shape in enumerate(shapes)}
    return ws.networks.Function(init, lambda params, x: x * sum(jnp.sum(leaf) for leaf in params.values()))


def gaussian_of(covariance, seed: int = 9) -> Gaussian:
    """A Gaussian over a scalar, a vector and a matrix leaf: seven weights."""
    model = ws.Model(network_with((), (2,), (2, 2)), ws.likelihoods.Gaussian(0.5), ws.priors.Normal(1.0))
    posterior = model.condition(ws.Batch(np.array([[0.5], [1.0]]), np.array([0.3, 0.1])))
    position = posterior.start_position(jax.random.key(0))
    flat = np.random.default_rng(seed).normal(size=SIZE)
    leaves, structure = jax.tree.flatten(position)
    parts = np.split(flat, np.cumsum([leaf.size for leaf in leaves])[:-1])
    mean = jax.tree.unflatten(
        structure, [jnp.asarray(p.reshape(leaf.shape)) for p, leaf in zip(parts, leaves, strict=True)]
    )
    return Gaussian.over(posterior, mean, covariance)


def flat_draws(gaussian: Gaussian, num_draws: int) -> np.ndarray:
    draws = gaussian.sample(jax.random.key(11), num_draws)
    leaves = [np.asarray(leaf)[0].reshape(num_draws, -1) for leaf in jax.tree.leaves(draws.params.network)]
    return np.concatenate(leaves, axis=1)


@every_structure
def test_draws_have_the_mean_and_the_covariance(make):
    covariance, dense = make()
    gaussian, num = gaussian_of(covariance), 20_000
    values = flat_draws(gaussian, num)
    centred = values - np.asarray(gaussian.location)
    # Draws are independent: a mean errs by √(Σ_ii/n), a covariance by √((Σ_ii Σ_jj + Σ_ij²)/n).
    spread = np.sqrt(np.diag(dense))
    assert np.all(np.abs(centred.mean(axis=0)) < 6 * spread / np.sqrt(num))
    error = np.sqrt((np.outer(spread, spread) ** 2 + dense**2) / num)
    assert np.all(np.abs(centred.T @ centred / num - dense) < 6 * error)


@every_structure
def test_density_products_and_diagonals_are_those_of_the_dense_matrix(make):
    covariance, dense = make()
    gaussian = gaussian_of(covariance)
    point = np.random.default_rng(3).normal(size=SIZE)
    truth = stats.multivariate_normal(np.asarray(gaussian.location), dense).logpdf(point)
    log_density = gaussian.log_density(gaussian.layout.unflatten(jnp.asarray(point)))
    np.testing.assert_allclose(log_density, truth, rtol=1e-10)
    product = gaussian.covariance_vector_product(gaussian.layout.unflatten(jnp.asarray(point)))
    np.testing.assert_allclose(gaussian.layout.flatten(product), dense @ point, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(covariance.diagonal(), np.diag(dense), rtol=1e-9)
    np.testing.assert_allclose(covariance.precision_diagonal(), np.diag(np.linalg.inv(dense)), rtol=1e-8)
    np.testing.assert_allclose(covariance.log_determinant(), np.linalg.slogdet(dense)[1], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(covariance.root(covariance.whiten(jnp.asarray(point))), point, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(gaussian.layout.flatten(gaussian.variance), np.diag(dense), rtol=1e-9)


@pytest.mark.parametrize("other", STRUCTURES.values(), ids=STRUCTURES)
@every_structure
def test_divergence_is_the_closed_form(make, other):
    (covariance, dense), (to_covariance, to_dense) = make(), other()
    of, to = gaussian_of(covariance), gaussian_of(to_covariance, seed=10)
    shift, inverse = np.asarray(to.location - of.location), np.linalg.inv(to_dense)
    logs = np.linalg.slogdet(to_dense)[1] - np.linalg.slogdet(dense)[1]
    truth = 0.5 * (np.trace(inverse @ dense) + shift @ inverse @ shift - SIZE + logs)
    np.testing.assert_allclose(kl_divergence(of, to), truth, rtol=1e-8)


@every_structure
def test_saved_and_loaded_in_the_same_bits(make, tmp_path):
    gaussian = gaussian_of(make()[0])
    gaussian.save(tmp_path)
    network = gaussian.header.model.network
    loaded = Gaussian.load(tmp_path, gaussian.posterior)
    assert jax.tree.all(jax.tree.map(np.array_equal, loaded.covariance, gaussian.covariance))
    first, second = (one.sample(jax.random.key(1), 3) for one in (gaussian, loaded))
    assert jax.tree.all(jax.tree.map(np.array_equal, first.sampled(), second.sampled()))
    without = load_approximation(tmp_path, network=network)
    assert np.all(np.isnan(without.sample(jax.random.key(1), 3).log_density))
    with pytest.raises(InputError, match="must know the data"):
        without.evidence(jax.random.key(0), 10)


def test_draws_carry_both_densities_and_weigh_to_the_evidence():
    known = linear()
    mean = known.posterior.start_position(jax.random.key(0))
    mean = jax.tree.map(lambda leaf: jnp.asarray(known.mean.reshape(leaf.shape)), mean)
    exact = Gaussian.over(known.posterior, mean, Full.of_covariance(jnp.asarray(known.covariance)))
    draws = exact.sample(jax.random.key(1), 50)
    np.testing.assert_allclose(draws.log_density - draws.log_proposal, known.log_evidence, atol=1e-8)
    wide = Gaussian.over(known.posterior, mean, Full.of_covariance(jnp.asarray(1.5 * known.covariance)))
    evidence = wide.evidence(jax.random.key(2), 4000)
    assert abs(evidence.value - known.log_evidence) < 5 * evidence.standard_error < 0.1
    # For N(0, Σ) weighed from N(0, aΣ) in d dimensions (E w)² / E w² = (√(2a − 1) / a)^d.
    efficiency = (np.sqrt(2 * 1.5 - 1) / 1.5) ** 3
    assert abs(evidence.efficiency - efficiency) < 0.05
    assert evidence.pareto_k < 0.7
    assert len(str(evidence)) < 120


def test_blocks_may_leave_weights_fixed():
    part = Full.of_covariance(jnp.asarray(positive_definite(2, 1)))
    some = gaussian_of(Blocks((part,), (np.array([4, 1]),), SIZE))
    values = flat_draws(some, 10)
    fixed = [0, 2, 3, 5, 6]
    np.testing.assert_array_equal(values[:, fixed], np.tile(np.asarray(some.location)[fixed], (10, 1)))
    assert np.all(np.ptp(values[:, [4, 1]], axis=0) > 0)
    assert not some.is_proper
    with pytest.raises(InputError, match="density over all weights"):
        some.evidence(jax.random.key(0), 10)
    with pytest.raises(InputError, match="over the same weights"):
        kl_divergence(some, some)


@pytest.mark.parametrize("k", [0.2, 0.5, 0.9])
def test_tail_index_is_that_of_a_pareto_law(k):
    """log w exponential with mean k: w has a Pareto tail of index k. The estimate uses the 3√n largest weights."""
    num = 40_000
    log_weights = k * np.random.default_rng(1).exponential(size=num)
    error = (1 + k) / np.sqrt(3 * np.sqrt(num))
    assert abs(importance_evidence(log_weights).pareto_k - k) < 5 * error < 0.4


def test_weights_far_apart_are_not_trusted():
    log_weights = np.random.default_rng(0).normal(size=1000) * 10
    evidence = importance_evidence(log_weights)
    assert evidence.pareto_k > 0.7
    assert evidence.efficiency < 0.02
    assert "not to be trusted" in str(evidence)
    with pytest.raises(InputError, match="Log weights must be finite"):
        importance_evidence(np.array([0.0, np.nan]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Diagonal(np.array([1.0, -1.0])), "`scale` of Diagonal must be positive"),
        (lambda: LowRank(np.ones(2), np.eye(2), np.array([0.0, -1.0])), "`gains` of LowRank must be above -1"),
        (lambda: Blocks((Diagonal(np.ones(2)),), (np.array([0, 0]),), 3), "distinct and below 3"),
        (lambda: Blocks((Diagonal(np.ones(2)),), (np.array([0]),), 3), r"must have lengths \[2\], got \[1\]"),
        (lambda: gaussian_of(Diagonal(np.ones(3))), "must be over 7 weights, got 3"),
    ],
)
def test_parts_that_do_not_fit_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_no_evidence_of_its_own_is_said():
    with pytest.raises(InputError, match="a method that has one"):
        _ = gaussian_of(diagonal()[0]).log_evidence


def test_a_new_covariance_compiles_nothing(monkeypatch):
    traces = []
    original = Diagonal.root
    monkeypatch.setattr(Diagonal, "root", lambda self, white: (traces.append(1), original(self, white))[1])
    gaussian = gaussian_of(Diagonal(np.ones(SIZE)))
    for scale in (1.0, 2.0, 3.0):
        other = dataclasses.replace(gaussian, covariance=Diagonal(np.full(SIZE, scale)), facts=Facts(scale=scale))
        other.sample(jax.random.key(0), 4)
    assert len(traces) <= 4  # once for the shapes of each, once for the program


def test_chains_start_at_draws_from_an_approximation():
    known = linear()
    mean = jax.tree.map(
        lambda leaf: jnp.asarray(known.mean.reshape(leaf.shape)), known.posterior.start_position(jax.random.key(0))
    )
    exact = Gaussian.over(known.posterior, mean, Full.of_covariance(jnp.asarray(known.covariance)))
    draws = ws.HMC(num_chains=2, num_draws=5, num_warmup=0).run(jax.random.key(0), known.posterior, init=exact)
    distance = (np.asarray(draws.params.network["layer0"]["weight"])[..., 0] - known.mean) @ np.linalg.inv(
        np.linalg.cholesky(known.covariance)
    ).T
    assert np.all(np.abs(distance) < 8)
