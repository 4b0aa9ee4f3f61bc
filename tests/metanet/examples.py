"""Networks with known symmetries, and metanets over them whose numbers are all different from zero."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.symmetry.zoo import CASES, weights

from weightscape.metanet import Metanet, Probes, Reader, Sizes
from weightscape.symmetry import discover

QUICK = ("tanh", "relu", "lstm")
KNOWN = (*QUICK, "skip", "dense_net", "attention")


def names(quick):
    """All cases; those that are not quick are slow tests."""
    return [pytest.param(name, marks=[pytest.mark.slow] * (name not in quick)) for name in CASES]


SMALL = Sizes(width=8, edge_width=4, num_blocks=1, num_heads=2)

SYMMETRIES = {}


def symmetry_of(name):
    """The symmetry of a case, discovered once."""
    if name not in SYMMETRIES:
        with jax.enable_x64(False):
            SYMMETRIES[name] = discover(CASES[name].network, weights(CASES[name]), CASES[name].x)
    return SYMMETRIES[name]


def doubles(name):
    """Weights and inputs of a case in double precision."""
    wide = lambda leaf: jnp.asarray(np.asarray(leaf), jnp.float64)
    return jax.tree.map(wide, weights(CASES[name])), wide(CASES[name].x)


def shaken(key, module, size=0.3):
    """The module with noise on all trained numbers, so that nothing is zero any more."""
    numbers, structure = eqx.partition(module, eqx.is_inexact_array)
    leaves, tree = jax.tree.flatten(numbers)
    draw = lambda i, leaf: jax.random.normal(jax.random.fold_in(key, i), leaf.shape, leaf.dtype)
    noisy = [leaf + size * draw(i, leaf) / len(leaf) ** 0.5 if leaf.size else leaf for i, leaf in enumerate(leaves)]
    changed = eqx.combine(jax.tree.unflatten(tree, noisy), structure)
    return eqx.tree_at(lambda m: m.trunk.scaling, changed, module.trunk.scaling)


def metanet(name, params, *, sizes=SMALL, symmetry=None, **options):
    found = symmetry_of(name) if symmetry is None else symmetry
    return shaken(jax.random.key(1), Metanet(jax.random.key(0), found, params, sizes=sizes, **options))


def reader(name, params, *, sizes=SMALL, symmetry=None, **options):
    found = symmetry_of(name) if symmetry is None else symmetry
    return shaken(jax.random.key(2), Reader(jax.random.key(0), found, params, num_outputs=3, sizes=sizes, **options))


def probes(name, x):
    return Probes(CASES[name].network, x, num_probes=2)


def distance(left, right):
    """The largest difference of two trees, over the largest entry."""
    leaves = list(zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True))
    largest = max(float(jnp.max(jnp.abs(b))) for _, b in leaves)
    return max(float(jnp.max(jnp.abs(a - b))) for a, b in leaves) / largest
