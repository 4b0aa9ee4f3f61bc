"""Compact posteriors have the moments of their draws, weighted or not, streamed or not, re-based or not."""

import dataclasses
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.geometry.scrambled import UNITS, draws_at, flat, known

import weightscape as ws
from weightscape.core import InputError
from weightscape.geometry.compact import compact
from weightscape.geometry.fits import DiagonalFit, LowRankFit
from weightscape.geometry.weight_moments import flat_positions, moments
from weightscape.inference import Gaussian


@pytest.fixture(autouse=True)
def _double(x64):
    """Exactness is claimed in double precision."""


def correlated(num_chains: int = 3, num_draws: int = 20, weighted: bool = False) -> tuple[ws.Draws, np.ndarray]:
    """Draws with correlated, badly scaled coordinates far from zero, a noise scale among them; and their weights."""
    posterior = known(inferred_noise=True).posterior
    generator = np.random.default_rng(7)
    size = flat(posterior.start_position(jax.random.key(0))).size
    mixing = generator.normal(size=(size, size)) * np.geomspace(0.01, 1.0, size)
    numbers = generator.normal(size=(num_chains, num_draws, size)) @ mixing + 5 * generator.normal(size=size)
    log_weights = 2 * generator.normal(size=(num_chains, num_draws)) if weighted else None
    weights = np.exp(log_weights).ravel() if log_weights is not None else np.ones(num_chains * num_draws)
    return draws_at(posterior, numbers, log_weights=log_weights), weights / weights.sum()


def dense(gaussian: Gaussian) -> np.ndarray:
    return np.asarray(jax.vmap(gaussian.covariance.times)(jnp.eye(gaussian.layout.size)))


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_those_of_numpy(weighted):
    draws, weights = correlated(weighted=weighted)
    rows = flat_positions(draws)
    gaussian = compact(draws, rebased=False)
    # Sums of 60 numbers of order ten in double precision: rounding of 1e-14; NumPy's covariance is unbiased likewise.
    covariance = np.cov(rows.T, aweights=weights)
    np.testing.assert_allclose(gaussian.location, weights @ rows, rtol=1e-12)
    np.testing.assert_allclose(dense(gaussian), np.diag(np.diag(covariance)), rtol=1e-10, atol=1e-16)
    np.testing.assert_allclose(gaussian.facts["effective_sample_size"], 1 / np.sum(weights**2))
    assert weighted == (gaussian.facts["effective_sample_size"] < 30)


@pytest.mark.parametrize("weighted", [False, True])
def test_low_rank_keeps_the_principal_directions_and_every_variance(weighted):
    draws, weights = correlated(weighted=weighted)
    covariance = np.cov(flat_positions(draws).T, aweights=weights)
    variances, directions = np.linalg.eigh(covariance)
    factor = directions[:, -3:] * np.sqrt(variances[-3:])
    left = np.diag(covariance) - np.sum(factor**2, axis=1)
    gaussian = compact(draws, structure=LowRankFit(3), rebased=False)
    scale = np.sqrt(np.diag(covariance))
    wanted = (factor @ factor.T + np.diag(left)) / np.outer(scale, scale)
    np.testing.assert_allclose(dense(gaussian) / np.outer(scale, scale), wanted, atol=1e-9)
    np.testing.assert_allclose(gaussian.covariance.diagonal(), np.diag(covariance), rtol=1e-9)
    off = wanted - np.diag(np.diag(wanted))
    assert np.abs(off).max() > 0.3


@pytest.mark.parametrize("structure", [DiagonalFit(), LowRankFit(3)], ids=["diagonal", "low rank"])
def test_draws_that_do_not_fit_in_memory_give_the_same(structure, monkeypatch):
    draws, _ = correlated(weighted=True)
    silent = np.array(draws.log_weights)
    silent[:, 5:9] = -np.inf  # whole stretches that weigh nothing
    draws = dataclasses.replace(draws, log_weights=silent)
    whole = compact(draws, structure=structure, rebased=False)
    monkeypatch.setattr("weightscape.geometry.weight_moments._STRETCH_BYTES", 1)
    monkeypatch.setattr("weightscape.geometry.fits._MATRIX_BYTES", 1)
    streamed = compact(draws, structure=structure, rebased=False)
    np.testing.assert_allclose(streamed.location, whole.location, rtol=1e-12)
    scale = np.sqrt(np.asarray(whole.covariance.diagonal()))
    np.testing.assert_allclose(
        dense(streamed) / np.outer(scale, scale), dense(whole) / np.outer(scale, scale), atol=1e-8
    )


def test_draws_on_disk_are_read_as_they_lie(tmp_path):
    draws, _ = correlated()
    draws.save(tmp_path)
    loaded = ws.Draws.load(tmp_path)
    np.testing.assert_array_equal(compact(loaded, rebased=False).location, compact(draws, rebased=False).location)


@pytest.mark.parametrize("structure", [DiagonalFit(), LowRankFit(3)], ids=["diagonal", "low rank"])
def test_it_is_an_approximation(structure, tmp_path):
    draws, _ = correlated()
    posterior = known(inferred_noise=True).posterior
    gaussian = compact(draws, structure=structure, rebased=False, posterior=posterior)
    made = gaussian.sample(jax.random.key(0), 20_000)
    centred, truth = flat_positions(made) - np.asarray(gaussian.location), dense(gaussian)
    spread = np.sqrt(np.diag(truth))
    # Independent draws: a mean errs by √(Σ_ii/n), a covariance by √((Σ_ii Σ_jj + Σ_ij²)/n); about 200 comparisons.
    assert np.all(np.abs(centred.mean(axis=0)) < 6 * spread / np.sqrt(20_000))
    error = np.sqrt((np.outer(spread, spread) ** 2 + truth**2) / 20_000)
    assert np.all(np.abs(centred.T @ centred / 20_000 - truth) < 6 * error)
    position = jax.tree.map(lambda leaf: leaf[0, 0], made.positions())
    wanted = stats.multivariate_normal(np.asarray(gaussian.location), truth, allow_singular=True).logpdf(flat(position))
    np.testing.assert_allclose(gaussian.log_density(position), wanted, rtol=1e-6)
    np.testing.assert_allclose(made.log_density[0, 0], posterior.log_density(position))
    gaussian.save(tmp_path)
    loaded = ws.load_approximation(tmp_path)
    assert jax.tree.all(jax.tree.map(np.array_equal, loaded.covariance, gaussian.covariance))
    assert np.all(np.isnan(loaded.sample(jax.random.key(0), 2).log_density))


def test_a_weight_that_does_not_vary_is_named_or_given_the_floor():
    draws, _ = correlated()
    network = {name: dict(leaves) for name, leaves in draws.params.network.items()}
    weight = np.array(network["layer0"]["weight"])
    weight[:, :, 1, 2] = 1 / 3
    network["layer0"]["weight"] = weight
    still = dataclasses.replace(draws, params=draws.params._replace(network=network))
    with pytest.raises(InputError, match=r"got none for 1 in network/layer0/weight. Pass `floor`"):
        compact(still, rebased=False)
    least = float(np.sqrt(np.sort(np.var(flat_positions(still), axis=0, ddof=1))[3]))
    gaussian = compact(still, rebased=False, floor=1.0001 * least)
    scales = np.sort(np.asarray(gaussian.covariance.diagonal()) ** 0.5)
    np.testing.assert_allclose(scales[:4], 1.0001 * least)
    assert scales[4] > 1.0001 * least and gaussian.facts["num_floored"] == 4


def test_few_draws_are_refused_with_a_remedy():
    draws, _ = correlated(1, 4)
    with pytest.raises(InputError, match="below 3, the number of directions"):
        compact(draws, structure=LowRankFit(3), rebased=False)
    assert compact(draws, structure=LowRankFit(2), rebased=False).is_proper
    with pytest.raises(InputError, match="at least two that weigh something"):
        compact(draws[:, :1], rebased=False)
    flat_out = dataclasses.replace(draws, log_weights=np.array([[0.0, -np.inf, -np.inf, -np.inf]]))
    with pytest.raises(InputError, match="at least two that weigh something"):
        compact(flat_out, rebased=False)


def test_across_permuted_modes_the_moments_are_those_of_the_mixture():
    made = known()
    few = made.draws[:1, :10]
    orders = jnp.asarray(list(itertools.permutations(range(UNITS))))
    identities = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (1, 240, *leaf.shape)), made.symmetry.identity())
    every = eqx.tree_at(lambda e: e.permutations, identities, (jnp.repeat(orders, 10, axis=0)[None],))
    copies = made.symmetry.apply(few[:, [*range(10)] * 24], every)
    mean, variance = (getattr(compact(copies, rebased=False), part) for part in ("mean", "variance"))
    # Each unit is any of the four in turn: its moments are those of all their weights together.
    weights = np.asarray(few.params.network["layer0"]["weight"])[0]
    together = np.repeat(weights.mean(axis=(0, 2))[:, None], UNITS, axis=1)
    np.testing.assert_allclose(mean.network["layer0"]["weight"], together, rtol=1e-10)
    spread = np.repeat(weights.var(axis=(0, 2))[:, None], UNITS, axis=1) * 240 / 239
    np.testing.assert_allclose(variance.network["layer0"]["weight"], spread, rtol=1e-10)
    assert moments(made.scrambled).total_variance > 5 * moments(made.draws).total_variance


@pytest.mark.parametrize("structure", [DiagonalFit(), LowRankFit(3)], ids=["diagonal", "low rank"])
def test_draws_are_rebased_as_they_are_read(structure, monkeypatch):
    made = known()
    weights = np.random.default_rng(5).normal(size=(4, 50))
    draws, scrambled = (dataclasses.replace(d, log_weights=weights) for d in (made.draws, made.scrambled))
    reference = draws_at(made.posterior, made.mean[None, None])
    monkeypatch.setattr("weightscape.geometry.weight_moments._STRETCH_BYTES", 20_000)  # a few draws at a time
    found = compact(scrambled, reference, structure=structure)
    # The units are far apart, so that every draw comes back to where it was.
    truth = compact(draws, rebased=False, structure=structure)
    np.testing.assert_allclose(found.location, truth.location, rtol=1e-10)
    np.testing.assert_allclose(dense(found), dense(truth), atol=1e-12)
    assert found.facts["rebased"] and not truth.facts["rebased"]
    with pytest.raises(InputError, match="taken as they are must have no reference"):
        compact(scrambled, reference, rebased=False)
