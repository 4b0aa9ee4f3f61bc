"""The audit of generators: brute force, the U test of scipy, planted copies, and what baselines are."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest
from scipy import stats

import weightscape as ws
from weightscape.core import InputError
from weightscape.draws import Header
from weightscape.evaluate import (
    audit,
    averages,
    blends,
    copy_candidates,
    function_features,
    matched_distances,
    memorisation,
    nearest_distances,
    noisy_copies,
    weight_features,
    z_u,
)

KEY = jax.random.key(0)


def rows(seed, count, size=5):
    return 100.0 + np.random.default_rng(seed).normal(size=(count, size))


def test_nearest_distances_are_those_of_a_loop():
    networks, train = rows(0, 600), rows(1, 30)
    networks[7] = train[3]
    known = [min(float(np.sqrt(np.sum((a - b) ** 2))) for b in train) for a in networks]
    np.testing.assert_allclose(nearest_distances(networks, train), known, rtol=1e-12)
    assert nearest_distances(networks, train)[7] == 0.0
    with pytest.raises(InputError, match="must have the same features"):
        nearest_distances(networks, train[:, 1:])


def test_features_of_single_precision_are_compared_in_it_and_copies_are_at_zero():
    """Half a million steps of rounding between networks, and a copy, which products of matrices alone would miss."""
    networks, train = rows(0, 40, 300).astype(np.float32), rows(1, 50, 300).astype(np.float32)
    networks[3] = train[5]
    known = np.linalg.norm(networks[:, None].astype(float) - train[None].astype(float), axis=2).min(axis=1)
    np.testing.assert_allclose(nearest_distances(networks, train), known, rtol=1e-5)
    assert nearest_distances(networks, train)[3] == 0.0


def test_z_u_counts_pairs_and_is_that_of_scipy():
    """scipy's p value of one side, by the normal law without a correction, is Φ(Z_U); ties in half of the numbers."""
    generator = np.random.default_rng(0)
    ours, theirs = np.round(generator.normal(size=40), 1), np.round(0.3 + generator.normal(size=70), 1)
    larger = sum((a > b) + 0.5 * (a == b) for a in ours for b in theirs)
    test = stats.mannwhitneyu(ours, theirs, alternative="less", use_continuity=False, method="asymptotic")
    assert test.statistic == larger
    np.testing.assert_allclose(stats.norm.cdf(z_u(ours, theirs)), test.pvalue, rtol=1e-10)
    np.testing.assert_allclose(z_u(theirs, ours), -z_u(ours, theirs), rtol=1e-12)
    without = np.arange(5.0), np.arange(5.0) + 0.5
    plain = (10 - 12.5) / np.sqrt(25 * 11 / 12)
    np.testing.assert_allclose(z_u(*without), plain, rtol=1e-12)
    assert z_u(np.ones(3), np.ones(4)) == 0.0


def test_copies_are_found_and_fresh_networks_are_not():
    train, held_out, fresh = rows(0, 200), rows(1, 100), rows(2, 100)
    copies = train[:100] + 0.01 * np.random.default_rng(3).normal(size=(100, 5))
    assert abs(memorisation(fresh, train, held_out).z_u) < 5
    assert 0.8 < memorisation(fresh, train, held_out).ratio < 1.25
    found = memorisation(copies, train, held_out)
    assert found.z_u < -10 and found.ratio < 0.1
    assert found.ratio == found.generated / found.held_out
    assert audit(nearest_distances(copies, train), nearest_distances(held_out, train)) == found
    assert memorisation(3 * fresh, train, held_out).z_u > 10
    with pytest.raises(InputError, match="must differ from those of training"):
        memorisation(fresh, train, train)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_one_distance_that_is_not_finite_hides_no_copies(bad):
    """50 copies among 50 others have a Z_U of −8.6; with one more that is no number there is none."""
    train, held_out = rows(0, 200), rows(1, 50)
    copies = np.vstack([train[:50], np.full((1, 5), bad)])
    assert memorisation(copies[:50], train, held_out).z_u < -8
    ours, theirs = np.append(np.zeros(50), bad), np.ones(50)
    for score in (z_u, audit):
        with pytest.raises(InputError, match=r"Distances of generated networks must be finite, .* at index \(50,\)"):
            score(ours, theirs)
        with pytest.raises(InputError, match=r"Distances of held-out networks must be finite, .* at index \(50,\)"):
            score(theirs, ours)
    for name, given in (
        ("generated", (copies, train, held_out)),
        ("training", (held_out, copies, held_out)),
        ("held-out", (held_out, train, copies)),
    ):
        with pytest.raises(InputError, match=rf"Features of {name} networks must be finite, .* at index \(50, 0\)"):
            memorisation(*given)


@pytest.mark.parametrize("num_iterates", [1, 5, 20])
def test_z_u_is_standard_normal_for_one_iterate_of_each_run_and_wider_for_more(num_iterates):
    """Its variance is k (m + n/k + 1) / (m + n + 1) where the k iterates of a run hardly differ: that of n/k runs.

    The means of 2,000 values and of their squares have errors of σ/√2000 and √2 σ²/√2000; 5 of each are allowed.
    """
    m, runs, repeats = 60, 40, 2000
    generator, n = np.random.default_rng(0), runs * num_iterates

    def drawn():
        iterates = np.repeat(generator.normal(size=runs), num_iterates) + 1e-9 * generator.normal(size=n)
        return z_u(generator.normal(size=m), iterates)

    found = np.asarray([drawn() for _ in range(repeats)])
    variance = (m + runs + 1) * num_iterates / (m + n + 1)
    assert abs(found.mean()) < 5 * np.sqrt(variance / repeats)
    np.testing.assert_allclose(np.mean(found**2), variance, rtol=5 * np.sqrt(2 / repeats))


@pytest.fixture(scope="module")
def population():
    """Eight ReLU networks of three classes, hardly trained."""
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(30, 4)), np.arange(30) % 3
    model = ws.Model(
        ws.networks.MLP(hidden=(3, 3), activation="relu"), ws.likelihoods.Categorical(3), ws.priors.Normal(1.0)
    )
    draws = ws.Population(num_runs=8, num_steps=5).run(KEY, model.condition(ws.Batch(x, y)))
    return draws, x


def test_features_of_equivalent_networks_are_the_same(population):
    draws, x = population
    one = jax.tree.map(lambda leaf: leaf[0, 0], draws.params.network)
    symmetry = ws.symmetry.discover(draws.model.network, one, np.asarray(x, np.float32))
    assert symmetry.num_scales == 6
    moved = symmetry.apply(draws, symmetry.random(jax.random.key(2)))
    functions, weights = function_features(draws, x), weight_features(draws, draws)
    assert functions.shape == (8, 90) and weights.shape == (8, 15 + 12 + 12)
    np.testing.assert_allclose(function_features(moved, x), functions, atol=1e-5)
    np.testing.assert_allclose(weight_features(moved, draws), weights, atol=1e-4)
    assert nearest_distances(weights[1:], weights[:1]).min() > 0.5
    copies = dataclasses.replace(moved, params=jax.tree.map(lambda leaf: leaf[:3], moved.params),
                                 log_density=moved.log_density[:3], info={})  # fmt: skip
    assert memorisation(weight_features(copies, draws), weights[:4], weights[4:]).z_u < -2


def unit_weights(draws):
    """Weights of each network as lists of matrices with shifts beside them, of units of norm one."""
    for n in range(len(draws)):
        layers = [jax.tree.map(lambda leaf, n=n: np.asarray(leaf, float).reshape(-1, *leaf.shape[2:])[n], layer)
                  for _, layer in sorted(draws.params.network.items())]  # fmt: skip
        tables, scale = [], 1.0
        for layer in layers[:-1]:
            table = np.vstack([np.asarray(layer["weight"]) * np.reshape(scale, (-1, 1)), layer["bias"][None]])
            scale = np.linalg.norm(table, axis=0)
            tables.append(table / scale)
        yield [*tables, np.vstack([layers[-1]["weight"] * scale[:, None], layers[-1]["bias"][None]])]


def closest_by_hand(one, other):
    """Over all 36 pairs of permutations of two layers of three units."""
    first, second, last = other
    best = np.inf
    for p, q in itertools.product(itertools.permutations(range(3)), repeat=2):
        p, q, rows = list(p), list(q), lambda order: [*order, 3]
        moved = [first[:, p], second[rows(p)][:, q], last[rows(q)]]
        best = min(best, sum(np.sum((a - b) ** 2) for a, b in zip(one, moved, strict=True)))
    return np.sqrt(best)


def test_distances_by_weights_are_those_of_all_permutations(population):
    """Of copies with a little noise, in other units' places and other scales, and of networks of other runs.

    Coordinate descent is not sure to find the closest form; it must for copies, and is never closer than that.
    """
    draws, x = population
    train, others = draws[:5], draws[5:]
    one = jax.tree.map(lambda leaf: leaf[0, 0], draws.params.network)
    symmetry = ws.symmetry.discover(draws.model.network, one, np.asarray(x, np.float32))
    copies = symmetry.apply(noisy_copies(KEY, train, 12, noise=0.02), symmetry.random(jax.random.key(2)))
    every = lambda some: np.tile(np.arange(5), (len(some), 1))
    by_hand = lambda some: [min(closest_by_hand(a, b) for b in unit_weights(train)) for a in unit_weights(some)]
    found, known = matched_distances(copies, train, every(copies)), np.asarray(by_hand(copies))
    np.testing.assert_allclose(found, known, atol=1e-4)
    fresh, least = matched_distances(others, train, every(others)), np.asarray(by_hand(others))
    assert np.all(fresh > least - 1e-4) and np.median(fresh / least) < 1.1
    assert np.max(found) < 0.3 * np.min(fresh)
    some = np.asarray([10, 3])
    np.testing.assert_array_equal(matched_distances(copies, train, every(copies)[:2], chosen=some), found[some])
    with pytest.raises(InputError, match="`rows` of matched_distances must be as many as networks, got 1 for 3"):
        matched_distances(others, train, every(others)[:1])


def test_candidates_are_the_closest_in_either_way():
    networks, train = rows(0, 600), rows(1, 30)
    others = (rows(2, 600, 3), rows(3, 30, 3))
    found = copy_candidates((networks, train), others, count=4)
    order = lambda a, b: np.argsort(np.linalg.norm(a[:, None] - b[None], axis=2), axis=1)[:, :4]
    np.testing.assert_array_equal(found, np.hstack([order(networks, train), order(*others)]))
    assert copy_candidates((networks, train[:3]), count=4).shape == (600, 3)


def test_units_that_training_has_shrunk_to_nothing_do_not_set_distances(population):
    """A unit of weights 1e-14 and shift 1e-9, which does nothing, has features of the size that others have."""
    draws, _ = population
    layer = draws.params.network["layer0"]
    weight, bias = (np.array(layer[name]) for name in ("weight", "bias"))
    weight[0, :, :, 1], bias[0, :, 1] = 1e-14, 1e-9
    params = draws.params._replace(network={**draws.params.network, "layer0": {"weight": weight, "bias": bias}})
    features = weight_features(dataclasses.replace(draws, params=params), draws)
    assert np.max(np.abs(features[0])) < 2 * np.max(np.abs(features[1:]))


@pytest.fixture(scope="module")
def inferred():
    """Thirty networks of a prior with scales of weights and a scale of noise, all of which are positive."""
    noise, prior = ws.priors.Gamma(2.0, 2.0), ws.priors.Hierarchical(ws.priors.HalfNormal(1.0))
    model = ws.Model(ws.networks.MLP(hidden=(3,)), ws.likelihoods.Gaussian(noise), prior)
    x = np.random.default_rng(0).normal(size=(6, 2))
    posterior = model.condition(ws.Batch(x, x[:, :1]))
    positions = jax.vmap(posterior.sample_prior_position)(jax.random.split(KEY, 30))
    params = jax.tree.map(lambda leaf: np.asarray(leaf)[None], jax.vmap(posterior.constrain)(positions))
    return ws.Draws(params, np.zeros((1, 30)), *Header.of(posterior))


def test_noise_is_added_to_weights_and_to_no_scale(inferred):
    """With noise of a deviation one scale in a few would be negative; copies have all those of their originals."""
    noisy = noisy_copies(KEY, inferred, 400, noise=1.0).params
    scales = lambda params: np.stack([np.ravel(leaf) for leaf in jax.tree.leaves((params.likelihood, params.prior))], 1)
    found, known = scales(noisy), scales(inferred.params)
    assert found.shape[1] > 1 and np.min(known) > 0
    original = np.argmin(np.abs(found[:, :1] - known[:, :1].T), axis=1)
    np.testing.assert_array_equal(found, known[original])
    for leaf, before in zip(*map(jax.tree.leaves, (noisy.network, inferred.params.network)), strict=True):
        moved = (leaf - before[:, original]) / np.std(before)
        # Means of squares of variance 2, which each weight of each network adds to: 6 standard errors.
        np.testing.assert_allclose(np.mean(moved**2), 1.0, atol=6 * np.sqrt(2 / moved.size))


def test_baselines_are_copies_with_noise_and_means(population):
    draws, x = population
    flat = lambda each: np.concatenate(
        [np.asarray(leaf).reshape(len(each), -1) for leaf in jax.tree.leaves(each.params)], axis=1
    )
    noisy = noisy_copies(KEY, draws, 400, noise=1e-3)
    weights, original = flat(noisy), flat(draws)
    shaken = weights - original[np.argmin(np.linalg.norm(weights[:, None] - original[None], axis=2), axis=1)]
    scale = np.concatenate([
        np.full(np.size(leaf) // 8, np.std(leaf)) for leaf in jax.tree.leaves(draws.params)
    ])  # fmt: skip
    # Means of 400 × 39 squares of variance 2: 6 standard errors.
    np.testing.assert_allclose(np.mean((shaken / (1e-3 * scale)) ** 2), 1.0, atol=6 * np.sqrt(2 / shaken.size))
    whole = averages(KEY, draws, 3, num_averaged=8)
    np.testing.assert_allclose(flat(whole), np.repeat(original.mean(0, keepdims=True), 3, axis=0), atol=1e-6)
    pairs = flat(averages(KEY, draws, 5))
    means = (original[:, None] + original[None]).reshape(64, -1) / 2
    assert nearest_distances(pairs, means).max() < 1e-5 < nearest_distances(pairs, original).min()
    assert np.all(np.isnan(whole.log_density)) and ws.predict(whole, x).probabilities.shape == (30, 3)
    part = flat(blends(KEY, draws, 5, share=0.25))
    sums = (0.75 * original[:, None] + 0.25 * original[None]).reshape(64, -1)
    np.testing.assert_allclose(flat(blends(KEY, draws, 5)), pairs, atol=1e-6)  # of the same pairs, in halves
    assert nearest_distances(part, sums).max() < 1e-5 < nearest_distances(part, original).min()
    with pytest.raises(InputError, match="`share` of blends must lie strictly between 0 and 1, got 1"):
        blends(KEY, draws, 1, share=1.0)
    with pytest.raises(InputError, match="At most 8 networks can be averaged, got 9"):
        averages(KEY, draws, 1, num_averaged=9)
