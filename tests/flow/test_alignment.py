"""Couplings by symmetry: equivalent, close, natural, and with the marginals of an invariant density."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.metanet.examples import doubles, symmetry_of
from tests.symmetry.zoo import CASES

from weightscape import networks as nn
from weightscape.core.checks import InputError
from weightscape.core.layout import Layout
from weightscape.flow.alignment import Aligned, aligned, moved_at_random
from weightscape.flow.couplings import Chained, OptimalTransport
from weightscape.symmetry import Element, discover

pytestmark = pytest.mark.usefixtures("x64")
NUM_PAIRS = 24


def small(hidden, inputs=1):
    """A tanh network of one output, its symmetry and its layout in double precision."""
    network = nn.MLP(hidden=hidden, outputs=1)
    with jax.enable_x64(False):
        x = jnp.linspace(-1, 1, 4 * inputs).reshape(4, inputs)
        params = network.init(jax.random.key(0), x)
        symmetry = discover(network, params, x)
    return symmetry, Layout.of(jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params))


def pairs_of(layout, count=NUM_PAIRS):
    key_source, key_target = jax.random.split(jax.random.key(7))
    draw = lambda key: jax.random.normal(key, (count, layout.size))
    return draw(key_source), 0.5 + 1.5 * draw(key_target)


def distances(sources, targets):
    return np.linalg.norm(np.asarray(sources) - np.asarray(targets), axis=1)


def elements(symmetry):
    """All elements of a symmetry of permutations and one sign for each unit, on a leading axis."""
    parts = [
        [(np.array(order), np.array([signs])) for order in itertools.permutations(range(n)) for signs in _signs(n)]
        for n in (group.size for group in symmetry.groups)
    ]
    every = [
        Element(tuple(p for p, _ in each), tuple(s for _, s in each), tuple(np.zeros((0, len(p))) for p, _ in each))
        for each in itertools.product(*parts)
    ]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *every)


def _signs(size):
    return itertools.product((1, -1), repeat=size)


def copies_of(symmetry, layout, targets):
    """The equivalent forms of each target."""
    move = lambda z, g: layout.flatten(symmetry.apply(layout.unflatten(z), g))
    return jax.jit(jax.vmap(jax.vmap(move, in_axes=(None, 0)), in_axes=(0, None)))(targets, elements(symmetry))


@pytest.mark.parametrize("name", ["tanh", "lstm"])
def test_targets_stay_equivalent_and_come_closer(name):
    """Their functions and sizes are those of before; an LSTM's group lies on some leaves twice."""
    params, x = doubles(name)
    layout, network = Layout.of(params), CASES[name].network
    sources, targets = pairs_of(layout)
    targets = 0.3 * targets
    coupling = Aligned().bind(symmetry_of(name), layout)
    paired = eqx.filter_jit(coupling.pair)(jax.random.key(1), sources, targets)
    outputs = jax.jit(jax.vmap(lambda z: network.apply(layout.unflatten(z), x)))
    # Sums of a few terms of size one, in another order.
    np.testing.assert_allclose(outputs(paired), outputs(targets), atol=1e-12)
    np.testing.assert_array_equal(np.sort(np.abs(paired), axis=1), np.sort(np.abs(targets), axis=1))
    moved = moved_at_random(jax.random.key(1), symmetry_of(name), jax.vmap(layout.unflatten)(targets))
    before = distances(sources, jax.vmap(layout.flatten)(moved))
    assert np.all(distances(sources, paired) <= before)
    assert np.mean(distances(sources, paired)) < 0.98 * np.mean(distances(sources, targets))


def test_one_hidden_layer_comes_as_close_as_any_element_brings_it():
    """Against all 3!·2³ elements; one assignment is all of it, and no more are made."""
    symmetry, layout = small((3,), inputs=2)
    sources, targets = pairs_of(layout)
    coupling = Aligned(7).bind(symmetry, layout)
    assert coupling.num_sweeps == 1 and Aligned(7).bind(*small((3, 2))).num_sweeps == 7
    paired = coupling.pair(jax.random.key(1), sources, targets)
    copies = copies_of(symmetry, layout, targets)
    assert copies.shape[1] == 48
    least = np.min(np.linalg.norm(np.asarray(sources)[:, None] - np.asarray(copies), axis=-1), axis=1)
    np.testing.assert_allclose(distances(sources, paired), least, rtol=1e-13)


def test_no_group_alone_brings_a_target_closer():
    """Two groups, swept until nothing changes, against all elements that leave one of the two as it is."""
    symmetry, layout = small((2, 2))
    sources, targets = pairs_of(layout)
    copies = np.asarray(copies_of(symmetry, layout, targets))
    farthest = np.argmax(np.linalg.norm(copies - np.asarray(sources)[:, None], axis=-1), axis=1)
    align = lambda source, target: aligned(symmetry, layout.unflatten(source), layout.unflatten(target), num_sweeps=10)
    starts = jnp.asarray(copies[np.arange(NUM_PAIRS), farthest])
    paired = jax.jit(jax.vmap(lambda source, target: layout.flatten(align(source, target))))(sources, starts)
    alone = np.arange(64)[(np.arange(64) % 8 == 0) | (np.arange(64) < 8)]
    moved = np.asarray(copies_of(symmetry, layout, paired))[:, alone]
    least = np.linalg.norm(moved - np.asarray(sources)[:, None], axis=-1).min(axis=1)
    np.testing.assert_allclose(distances(sources, paired), least, rtol=1e-13)


@pytest.mark.parametrize("name", ["tanh", "lstm"])
def test_the_rule_is_natural(name):
    """Source and target moved together by k: the answer is moved by k, entry by entry."""
    symmetry, layout = symmetry_of(name), Layout.of(doubles(name)[0])
    sources, targets = (jax.vmap(layout.unflatten)(vectors) for vectors in pairs_of(layout))
    keys = jax.random.split(jax.random.key(2), NUM_PAIRS)
    move = jax.vmap(lambda key, params: symmetry.apply(params, symmetry.random(key)))
    align = jax.vmap(lambda source, target: aligned(symmetry, source, target, num_sweeps=2))
    ours = jax.jit(lambda: align(move(keys, sources), move(keys, targets)))()
    theirs = jax.jit(lambda: move(keys, align(sources, targets)))()
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_array_equal(one, other)


def test_networks_are_moved_by_all_elements_alike():
    symmetry, layout = small((2,))
    z, number = jnp.arange(1.0, layout.size + 1), 8000
    tree = jax.vmap(layout.unflatten)(jnp.broadcast_to(z, (number, layout.size)))
    moved = jax.vmap(layout.flatten)(jax.jit(lambda: moved_at_random(jax.random.key(3), symmetry, tree))())
    _, counts = np.unique(moved, axis=0, return_counts=True)
    assert len(counts) == 8
    assert stats.chisquare(counts).pvalue > 1e-6


def test_paired_targets_have_the_moments_of_the_invariant_density():
    """Targets N(m, s²) are one of the 64 equal parts of an invariant mixture, whose moments are averages over parts."""
    symmetry, layout = small((2, 2))
    number, spread = 20_000, 0.3
    mean = np.random.default_rng(5).normal(1.0, 1.5, layout.size)
    key_source, key_target, key_pair = jax.random.split(jax.random.key(4), 3)
    sources = jax.random.normal(key_source, (number, layout.size))
    targets = jnp.asarray(mean)[None] + spread * jax.random.normal(key_target, (number, layout.size))
    paired = np.asarray(eqx.filter_jit(Aligned().bind(symmetry, layout).pair)(key_pair, sources, targets))

    parts = np.asarray(copies_of(symmetry, layout, jnp.asarray(mean)[None])[0])
    assert len(parts) == 64
    centre = np.mean(parts, axis=0)
    covariance = np.cov(parts.T, bias=True) + spread**2 * np.eye(layout.size)
    # Six standard errors for each of 104 moments.
    error = np.std(paired, axis=0) / number**0.5
    assert np.all(np.abs(paired.mean(0) - centre) < 6 * error)
    products = (paired - centre)[:, :, None] * (paired - centre)[:, None, :]
    error = np.std(products, axis=0) / number**0.5
    assert np.all(np.abs(products.mean(0) - covariance) < 6 * error)


def test_the_form_in_which_a_target_comes_is_forgotten():
    """A pair whose sweeps end far from the closest form, given in that form: chance alone finds it again.

    The sweeps end in the same form wherever they start, unless they start in one of the closer forms.
    """
    symmetry, layout = small((2, 2))
    sources, targets = pairs_of(layout, 100)
    copies = np.asarray(copies_of(symmetry, layout, targets))
    away = np.linalg.norm(copies - np.asarray(sources)[:, None], axis=-1)
    farthest, closest = (jnp.asarray(copies[np.arange(100), find(away, axis=1)]) for find in (np.argmax, np.argmin))
    coupling, number = Aligned().bind(symmetry, layout), 1000
    found = distances(sources, eqx.filter_jit(coupling.pair)(jax.random.key(1), sources, farthest))
    i = np.argmax(found - away.min(axis=1))
    num_closer = np.sum(away[i] < found[i] - 1e-9)
    assert 0 < num_closer < 16

    alike = lambda row: jnp.broadcast_to(row[i], (number, layout.size))
    paired = eqx.filter_jit(coupling.pair)(jax.random.key(2), alike(sources), alike(closest))
    num_found = np.sum(distances(alike(sources), paired) < found[i] - 1e-9)
    assert stats.binomtest(int(num_found), number, num_closer / 64).pvalue > 1e-6


def test_a_chain_aligns_what_transport_has_ordered():
    symmetry, layout = small((3,))
    sources, targets = pairs_of(layout)
    ordered = OptimalTransport().pair(jax.random.key(0), sources, targets)
    paired = Chained(OptimalTransport(), Aligned()).bind(symmetry, layout).pair(jax.random.key(0), sources, targets)
    np.testing.assert_array_equal(np.sort(np.abs(paired), axis=1), np.sort(np.abs(ordered), axis=1))
    assert np.all(distances(sources, paired) <= distances(sources, ordered))


def test_what_cannot_be_aligned_is_refused():
    symmetry, layout = small((3,))
    sources, targets = pairs_of(layout)
    for unbound in (Aligned(), Chained(OptimalTransport(), Aligned())):
        with pytest.raises(InputError, match="must know the symmetry"):
            unbound.pair(jax.random.key(0), sources, targets)
    with pytest.raises(InputError, match="permutations and signs alone, got 9 free scales"):
        Aligned().bind(symmetry_of("relu"), symmetry_of("relu").layout)
    with pytest.raises(InputError, match="must act on"):
        Aligned().bind(symmetry, small((2,))[1])
    again = Aligned(5).bind(*small((2,))).bind(symmetry, layout)
    assert again.pair(jax.random.key(0), sources, targets).shape == targets.shape
