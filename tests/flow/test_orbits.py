"""Orbits of weights: what random elements exchange, found by brute force."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.flow import tiny
from tests.metanet.examples import symmetry_of

import weightscape as ws
from weightscape.flow.orbits import orbits
from weightscape.symmetry import discover

NUM_ELEMENTS = 20


def moved_entries(symmetry, element):
    """Which entry of the flat vector comes to stand at each place."""
    layout = symmetry.layout
    numbers = layout.unflatten(jnp.arange(1.0, layout.size + 1))
    return np.abs(np.asarray(layout.flatten(symmetry.apply(numbers, element)))).round().astype(int) - 1


def components(symmetry):
    """The connected components of what elements exchange, each named by its first entry."""
    names = np.arange(symmetry.layout.size)
    for seed in range(NUM_ELEMENTS):
        moved = moved_entries(symmetry, symmetry.random(jax.random.key(seed)))
        for place, entry in enumerate(moved):
            low, high = sorted((names[place], names[entry]))
            names[names == high] = low
    return names


EACH = ["tanh", "lstm", *(pytest.param(name, marks=pytest.mark.slow) for name in ("relu", "skip", "convnet"))]


@pytest.mark.parametrize("name", EACH)
def test_weights_that_an_element_exchanges_have_one_number(name):
    symmetry = symmetry_of(name).without_scaling()
    labels = orbits(symmetry)
    assert labels.shape == (symmetry.layout.size,)
    assert set(labels) == set(range(labels.max() + 1))
    for seed in range(NUM_ELEMENTS):
        moved = moved_entries(symmetry, symmetry.random(jax.random.key(seed)))
        assert np.any(moved != np.arange(len(moved)))
        np.testing.assert_array_equal(labels[moved], labels)


def test_other_weights_have_other_numbers():
    """Only where one group stands on both axes of a weight, as in recurrent layers, may two orbits have one number."""
    symmetry = symmetry_of("tanh").without_scaling()
    labels, expected = orbits(symmetry), components(symmetry)
    np.testing.assert_array_equal(labels[:, None] == labels[None], expected[:, None] == expected[None])
    assert len(set(labels)) < len(labels)


@pytest.mark.usefixtures("x64")
def test_orbits_of_a_posterior_are_those_by_hand():
    """Two tanh units between one input and one output, and a noise scale: 2 + 2 + 2 weights, two single ones."""
    model = ws.Model(
        ws.networks.MLP(hidden=(2,), activation="tanh"),
        ws.likelihoods.Gaussian(ws.priors.Gamma(0.5, 1.0)),
        ws.priors.Normal(),
    )
    posterior = model.condition(ws.Batch(np.ones((4, 1)), np.ones((4, 1))))
    symmetry = discover(posterior)
    labels = orbits(symmetry)
    assert len(labels) == ws.flow.source_of(posterior).layout.size == 8
    assert sorted(np.bincount(labels)) == [1, 1, 2, 2, 2]
    assert sorted(np.bincount(orbits(discover(tiny.posterior())))) == [1, 2, 2, 2]
