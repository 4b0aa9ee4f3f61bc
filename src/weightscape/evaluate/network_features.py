"""What networks are compared by: their functions, or their weights without what symmetry alone changes.

    functions   p(y = c | x_n, θ) for all points and classes, or E[y | x_n, θ], in a row
    weights     g θ with unit scales, shifts included, g the permutation and signs that bring it closest to a reference

Both are the same for equivalent networks, weights as far as matching finds the closest. Distances of functions are
those that matter for predictions; distances of weights show copies that noise has moved in directions that data do not
see.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float

from weightscape.core.types import Tree
from weightscape.draws import Draws, Header, function_outputs
from weightscape.geometry import WeightMatching, unit_scales
from weightscape.symmetry import Symmetry, symmetry_of


def function_features(draws: Draws, x: ArrayLike) -> Float[np.ndarray, "network feature"]:
    """What every network says at the inputs x, in a row."""
    return np.asarray(function_outputs(draws, x)).reshape(len(draws), -1)


def weight_features(draws: Draws, reference: Draws) -> Float[np.ndarray, "network feature"]:
    """All weights of every network in a row, of unit scales, matched to the first network of `reference`."""
    networks, first = map(normalised_networks, (draws, reference[0, 0]))
    target = jax.tree.map(lambda leaf: leaf[0], first)
    kept = kept_symmetry(draws)
    matched = WeightMatching().match_many(jax.random.key(0), kept, networks, target)
    moved = _moved(kept, networks, matched.element)
    return np.concatenate([np.asarray(leaf).reshape(len(draws), -1) for leaf in jax.tree.leaves(moved)], axis=1)


def kept_symmetry(draws: Draws) -> Symmetry:
    """What moves networks of unit scales into each other: permutations and signs."""
    return _symmetry(draws).without_scaling()


def normalised_networks(draws: Draws) -> Tree:
    """Their weights, of unit scales, on one leading axis."""
    return _normalised(_symmetry(draws), _rows(draws))


def _symmetry(draws: Draws) -> Symmetry:
    """That of the network as a function."""
    one = jax.tree.map(lambda leaf: jnp.asarray(leaf[0, 0]), draws.params.network)
    x = Header(draws.model, draws.scaling, draws.example).standardised_example()
    return symmetry_of(draws.model.network.apply, one, x)


def _rows(draws: Draws) -> Tree:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf).reshape(-1, *leaf.shape[2:]), draws.params.network)


@eqx.filter_jit
def _normalised(symmetry: Symmetry, params: Tree) -> Tree:
    return jax.vmap(lambda one: unit_scales(symmetry, one, with_shifts=True).params)(params)


@eqx.filter_jit
def _moved(symmetry: Symmetry, params: Tree, elements: Tree) -> Tree:
    return jax.vmap(symmetry.apply)(params, elements)
