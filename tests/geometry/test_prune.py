"""Pruning keeps the weights that the score says, sets the others to zero in all draws, and touches nothing else."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.geometry.scrambled import flat, known

import weightscape as ws
from weightscape.core import InputError, InputTypeError
from weightscape.geometry.merge import merge
from weightscape.geometry.prune import prune
from weightscape.geometry.pruning_scores import ByMagnitude, BySignalToNoise, ByStandardDeviation
from weightscape.geometry.weight_moments import moments
from weightscape.inference import Diagonal, Full, Gaussian, Kronecker, LowRank


@pytest.fixture(autouse=True)
def _double(x64):
    """Exactness is claimed in double precision."""


SCORES = {
    "standard deviation": (ByStandardDeviation(), lambda mean, spread: -spread),
    "signal to noise": (BySignalToNoise(), lambda mean, spread: np.abs(mean) / spread),
    "magnitude": (ByMagnitude(), lambda mean, spread: np.abs(mean)),
}


def network_numbers(draws: ws.Draws) -> np.ndarray:
    """All weights of the network, of shape (chain, draw, weight)."""
    leaves = jax.tree.leaves(draws.params.network)
    return np.concatenate([np.asarray(leaf).reshape(*leaf.shape[:2], -1) for leaf in leaves], axis=2)


@pytest.mark.parametrize(("by", "score"), SCORES.values(), ids=SCORES)
def test_the_best_weights_are_kept_and_the_others_zero(by, score):
    made = known(inferred_noise=True)
    numbers = network_numbers(made.draws)
    size = numbers.shape[2]
    rows = numbers.reshape(-1, size)
    order = np.argsort(-score(rows.mean(axis=0), rows.std(axis=0, ddof=1)))
    pruned = prune(made.draws, 0.3, by=by)
    kept = np.isin(np.arange(size), order[: int(np.ceil(0.3 * size))])
    np.testing.assert_array_equal(flat(pruned.mask), kept)
    assert pruned.num_kept == kept.sum() == 6
    np.testing.assert_array_equal(network_numbers(pruned.result), np.where(kept, numbers, 0))
    np.testing.assert_array_equal(pruned.result.params.likelihood["scale"], made.draws.params.likelihood["scale"])


def test_the_orders_differ_and_shares_nest():
    draws = known().draws
    masks = [flat(prune(draws, 0.5, by=by).mask) for by, _ in SCORES.values()]
    assert not np.array_equal(masks[0], masks[1]) and not np.array_equal(masks[1], masks[2])
    shares = [flat(prune(draws, keep).mask) for keep in (0.01, 0.05, 0.5, 0.9, 1.0)]
    assert [share.sum() for share in shares] == [1, 1, 9, 16, 17]
    assert all(np.all(few <= more) for few, more in itertools.pairwise(shares))


def test_densities_of_pruned_draws_are_those_of_the_posterior_or_unknown():
    made = known(inferred_noise=True)
    without = prune(made.draws, 0.5).result
    assert np.all(np.isnan(without.log_density)) and without.log_density.shape == (4, 50)
    found = prune(made.draws, 0.5, posterior=made.posterior).result
    position = jax.tree.map(lambda leaf: leaf[1, 2], found.positions())
    np.testing.assert_allclose(found.log_density[1, 2], made.posterior.log_density(position), rtol=1e-12)


def test_one_network_is_pruned_by_the_spread_of_others():
    made = known()
    lone = merge(made.draws, rebased=False)
    pruned = prune(lone, 0.4, found=moments(made.draws))
    np.testing.assert_array_equal(flat(pruned.mask), flat(prune(made.draws, 0.4).mask))
    assert np.all(network_numbers(pruned.result)[0, 0][~flat(pruned.mask)] == 0)
    with pytest.raises(InputError, match="at least two that weigh something"):
        prune(lone, 0.4)


def covariances(size: int) -> dict:
    generator = np.random.default_rng(3)
    scale, factor = np.geomspace(0.1, 2.0, size), generator.normal(size=(size, 3))
    root = generator.normal(size=(size, size)) * scale[:, None] + np.eye(size)
    return {
        "diagonal": (Diagonal(scale), np.diag(scale**2)),
        "low rank": (
            LowRank.of_covariance(jnp.asarray(scale), jnp.asarray(factor)),
            np.diag(scale**2) + factor @ factor.T,
        ),
        "full": (Full.of_covariance(jnp.asarray(root @ root.T)), root @ root.T),
    }


@pytest.mark.parametrize("name", ["diagonal", "low rank", "full"])
def test_a_pruned_gaussian_is_fixed_at_zero_and_keeps_the_covariance_of_the_rest(name):
    made = known(inferred_noise=True)
    size = len(made.mean)
    covariance, dense = covariances(size)[name]
    position = jax.tree.map(lambda leaf: leaf[0, 0], made.draws.positions())
    gaussian = Gaussian.over(made.posterior, position, covariance)
    pruned = prune(gaussian, 0.5)
    is_network = np.arange(size) < size - 1  # the noise scale comes last, and is no weight
    order = np.argsort(np.sqrt(np.diag(dense))[is_network])
    kept = np.append(np.isin(np.arange(size - 1), order[:9]), True)
    np.testing.assert_array_equal(flat(pruned.mask), kept[:-1])
    np.testing.assert_array_equal(pruned.result.location, np.where(kept, gaussian.location, 0))
    found = np.asarray(jax.vmap(pruned.result.covariance.times)(jnp.eye(size)))
    np.testing.assert_allclose(found, np.where(np.outer(kept, kept), dense, 0), rtol=1e-9, atol=1e-12)
    assert not pruned.result.is_proper and pruned.result.facts["num_pruned"] == 8
    whole = prune(gaussian, 1.0).result
    assert whole.is_proper and whole.facts["num_pruned"] == 0


def test_what_cannot_be_pruned_says_why(unchecked):
    made = known()
    with pytest.raises(InputError, match="above 0 and at most 1, got 0"):
        prune(made.draws, 0)
    with pytest.raises(InputTypeError, match="must be a score, got str"):
        prune(made.draws, 0.5, by="magnitude")
    size = len(made.mean)
    kronecker = Kronecker(np.eye(size), np.eye(1), np.ones((size, 1)), np.ones((size, 1)))
    position = jax.tree.map(lambda leaf: leaf[0, 0], made.draws.positions())
    with pytest.raises(InputError, match="got Kronecker. Prune its draws"):
        prune(Gaussian.over(made.posterior, position, kronecker), 0.5)


def test_a_weight_that_is_always_zero_carries_no_signal():
    made = known()
    found = moments(made.draws)
    mean, variance = found.mean.copy(), found.variance.copy()
    mean[[0, 1]], variance[[0, 1]] = [0.0, 2.0], 0.0
    score = BySignalToNoise().score(found._replace(mean=mean, variance=variance))
    assert score[0] == 0 and np.isposinf(score[1]) and np.all(np.isfinite(score[2:]))
