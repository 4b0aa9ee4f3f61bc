"""Re-basing draws: functions and densities stay, distances fall, every kind of reference does what it says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import weightscape as ws
from weightscape.core import tree
from weightscape.core.checks import InputError, InputTypeError
from weightscape.core.progress import Progress
from weightscape.geometry import Centre, FirstDraw, MovingMean, WeightMatching, rebase, rebase_elements
from weightscape.geometry.many_networks import ManyNetworks
from weightscape.symmetry import discover, of_draws

key = jax.random.key
x = np.random.default_rng(0).normal(size=(12, 2))


def posterior(hidden=(4,), activation="tanh"):
    network = ws.networks.MLP(hidden=hidden, activation=activation)
    model = ws.Model(network, ws.likelihoods.Gaussian(ws.priors.Gamma(2.0, 2.0)), ws.priors.Normal(1.0))
    return model.condition(ws.Batch(x, np.tanh(x[:, 0])))


def draws_of(target, positions):
    lone = [ws.point(target, position) for position in positions]
    row = lambda some: jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *(one.sampled() for one in some))
    half = len(lone) // 2
    both = jax.tree.map(lambda *leaves: np.concatenate(leaves), row(lone[:half]), row(lone[half:]))
    return ws.Draws(both.params, both.log_density, lone[0].model, lone[0].scaling, lone[0].example)


def prior_draws(target, num=6):
    """Two chains of unrelated networks."""
    return draws_of(target, [target.sample_prior_position(key(i)) for i in range(num)])


def scattered(target, num=6, spread=0.05):
    """Two chains around one network, each draw at another of its copies."""
    centre = target.sample_prior_position(key(0))
    symmetry = discover(target)
    nearby = lambda i: tree.add(centre, tree.scale(spread, tree.normal_like(key(50 + i), centre)))
    return draws_of(target, [symmetry.apply(nearby(i), symmetry.random(key(i))) for i in range(num)])


def network_of(draws, i):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf.reshape(-1, *leaf.shape[2:])[i]), draws.params.network)


def distance(left, right):
    return float(tree.norm(tree.subtract(left, right)))


@pytest.mark.parametrize("reference", [None, FirstDraw(), MovingMean(), Centre(3)], ids=str)
def test_functions_and_densities_are_unchanged(x64, reference):
    target = posterior((4, 3))
    draws = prior_draws(target)
    moved = rebase(draws, reference)
    assert not np.allclose(moved.params.network["layer0"]["weight"], draws.params.network["layer0"]["weight"])
    np.testing.assert_array_equal(moved.log_density, draws.log_density)
    densities = jax.vmap(jax.vmap(target.log_density))(moved.positions())
    np.testing.assert_allclose(densities, draws.log_density, rtol=1e-11)
    apply = jax.vmap(jax.vmap(target.model.network.apply, in_axes=(0, None)), in_axes=(0, None))
    before, after = (apply(jax.tree.map(jnp.asarray, d.params.network), jnp.asarray(x)) for d in (draws, moved))
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-12)
    for left, right in zip(*(jax.tree.leaves(d.params.likelihood) for d in (draws, moved)), strict=True):
        np.testing.assert_array_equal(left, right)


def test_scattered_copies_come_together(x64):
    draws = scattered(posterior(), spread=0.0)
    for reference in (None, MovingMean(), Centre()):
        moved = rebase(draws, reference)
        for i in range(6):
            assert distance(network_of(moved, i), network_of(moved, 0)) < 1e-13
    assert distance(network_of(draws, 1), network_of(draws, 0)) > 1


def test_the_elements_are_those_that_move_the_draws(x64):
    draws = prior_draws(posterior((4, 3)))
    symmetry = of_draws(draws)
    elements = rebase_elements(draws, symmetry=symmetry, key=key(3))
    assert elements.permutations[0].shape == (2, 3, 4) and elements.signs[1].shape == (2, 3, 1, 3)
    moved, by_hand = rebase(draws, symmetry=symmetry, key=key(3)), symmetry.apply(draws, elements)
    for left, right in zip(jax.tree.leaves(moved.params), jax.tree.leaves(by_hand.params), strict=True):
        np.testing.assert_array_equal(left, right)


def test_every_draw_is_matched_as_it_is_alone(x64):
    draws = prior_draws(posterior((4, 3)))
    symmetry = of_draws(draws)
    elements = rebase_elements(draws)
    reference = jax.tree.map(lambda leaf: leaf[0, 0], draws.params)
    for chain, i in ((0, 1), (1, 2)):
        one = jax.tree.map(lambda leaf, chain=chain, i=i: leaf[chain, i], draws.params)
        alone = WeightMatching().match(jax.random.split(key(0))[0], symmetry, one, reference).element
        for left, right in zip(jax.tree.leaves(alone), jax.tree.leaves(elements), strict=True):
            np.testing.assert_array_equal(left, right[chain, i])


def test_chunks_change_nothing(x64):
    """Six draws as chunks of one, four and six; the second has a last chunk that is not full."""
    draws = prior_draws(posterior())
    symmetry, found = of_draws(draws), []
    reference = jax.tree.map(lambda leaf: leaf[0, 0], draws.params)
    one = 3 * 8 * (tree.size(reference) + 4**2)
    for memory, size in ((0, 1), (4 * one, 4), (6 * one, 6)):
        networks = ManyNetworks(draws.params, symmetry, WeightMatching(), Recorded(), memory)
        assert networks._chunk_size() == size
        elements = networks.match_all(key(0), reference)
        found.append((elements, networks.moved(elements), networks.mean(elements)))
    for other in found[1:]:
        for left, right in zip(jax.tree.leaves(found[0]), jax.tree.leaves(other), strict=True):
            np.testing.assert_allclose(left, right, rtol=0, atol=1e-15)


def test_weights_and_a_single_draw_as_the_reference(x64):
    draws = scattered(posterior())
    for reference in (draws[1, 2], network_of(draws, 5)):
        moved = rebase(draws, reference)
        assert distance(network_of(moved, 5), network_of(draws, 5)) == 0
        assert all(distance(network_of(moved, i), network_of(draws, 5)) < 1 for i in range(6))


def test_the_moving_mean_is_the_mean_of_the_draws_before(x64):
    draws = prior_draws(posterior())
    elements, symmetry = rebase_elements(draws, MovingMean()), of_draws(draws)
    moved = rebase(draws, MovingMean())
    for i in range(1, 6):
        rows = lambda leaf, i=i: leaf.reshape(-1, *leaf.shape[2:])[:i]
        mean = jax.tree.map(lambda leaf, rows=rows: np.mean(rows(leaf), axis=0), moved.params)
        one = jax.tree.map(lambda leaf, i=i: leaf.reshape(-1, *leaf.shape[2:])[i], draws.params)
        alone = WeightMatching().match(key(0), symmetry, one, mean).element
        for left, right in zip(jax.tree.leaves(alone), jax.tree.leaves(elements), strict=True):
            np.testing.assert_array_equal(left, right.reshape(6, *left.shape)[i])


def test_the_centre_is_settled_and_no_further_than_the_first_draw(x64):
    draws = prior_draws(posterior(), num=24)
    total = lambda moved: sum(float(np.sum((leaf - leaf.mean((0, 1))) ** 2)) for leaf in jax.tree.leaves(moved.params))
    first, centre = rebase(draws), rebase(draws, Centre())
    assert total(centre) < total(rebase(draws, Centre(1))) < total(first) < total(draws)
    again = rebase(centre, jax.tree.map(lambda leaf: leaf.mean((0, 1)), centre.params))
    for left, right in zip(jax.tree.leaves(again.params), jax.tree.leaves(centre.params), strict=True):
        np.testing.assert_array_equal(left, right)


def test_stored_draws_and_a_symmetry_of_the_network_alone(tmp_path):
    target = posterior()
    draws = scattered(target)
    draws.save(tmp_path / "draws")
    weights = network_of(draws, 0)
    symmetry = discover(target.model.network, weights, x)
    stored = ws.Draws.load(tmp_path / "draws")
    moved, expected = rebase(stored, symmetry=symmetry), rebase(draws)
    for left, right in zip(jax.tree.leaves(moved.params), jax.tree.leaves(expected.params), strict=True):
        np.testing.assert_array_equal(left, right)


class Recorded(Progress):
    def __init__(self):
        self.heard = []

    def start(self, label, total):
        self.heard.append((label, total))

    def advance(self, done, facts):
        self.heard.append((done, sorted(facts)))

    def finish(self):
        self.heard.append("finish")

    def seconds_left(self):
        return np.inf


def test_progress_is_reported():
    progress = Recorded()
    rebase(prior_draws(posterior()), progress=progress)
    assert progress.heard == [("rebase", 6), (6, ["distance"]), "finish"]


def test_errors(unchecked):
    draws = prior_draws(posterior(activation="relu"))
    network, weights = draws.model.network, network_of(draws, 0)
    with pytest.raises(InputTypeError, match="`draws` of rebase must be Draws, got dict"):
        rebase(weights)
    with pytest.raises(InputError, match="`reference` of rebase must be weights of the shapes"):
        rebase(draws, network_of(prior_draws(posterior((3,))), 0))
    with pytest.raises(InputError, match="must hold one network, got 6. Index them"):
        rebase(draws, draws)
    with pytest.raises(InputError, match="`symmetry` of rebase must act on weights of the shapes"):
        rebase(draws, symmetry=of_draws(prior_draws(posterior((3,)))))
    with pytest.raises(InputError, match="must leave the prior unchanged, got a log prior.*without_scaling"):
        rebase(draws, symmetry=discover(network, weights, x))
    with pytest.raises(InputError, match="`num_rounds` of Centre must be at least 1"):
        Centre(0)
