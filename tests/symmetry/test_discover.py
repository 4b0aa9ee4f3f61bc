"""Symmetries found in the programs of networks, against what is known of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.symmetry.zoo import CASES, NAMES, weights

from weightscape.symmetry import discover

SYMMETRIES = {}


def symmetry_of(name):
    """The symmetry of a case, discovered once."""
    if name not in SYMMETRIES:
        SYMMETRIES[name] = discover(CASES[name].network, weights(CASES[name]), CASES[name].x)
    return SYMMETRIES[name]


@pytest.mark.parametrize("name", NAMES)
def test_groups_are_those_that_are_known(name):
    found = [(group.size, group.kinds) for group in symmetry_of(name).groups]
    assert found == list(CASES[name].groups)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_random_element_leaves_outputs_unchanged(name, wide):
    case, symmetry = CASES[name], symmetry_of(name)
    with jax.enable_x64(wide):
        dtype = jnp.float64 if wide else jnp.float32
        params = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf), dtype), weights(case))
        x = jnp.asarray(case.x, dtype)
        run = lambda params, element: case.network.apply(symmetry.apply(params, element), x)
        keys = jax.random.split(jax.random.key(5), 4)
        elements = jax.vmap(lambda key: symmetry.random(key, scale_spread=0.5))(keys)
        before = np.asarray(jax.jit(run)(params, symmetry.identity()))
        after = np.asarray(jax.jit(jax.vmap(run, in_axes=(None, 0)))(params, elements))
    # Rounding in sums of a few dozen terms, over layers whose scales spread by e^±1.
    error = np.max(np.abs(after - before)) / np.max(np.abs(before))
    assert error < (1e-12 if wide else 5e-5)
