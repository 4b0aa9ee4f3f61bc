"""Training many networks at once, each after a recipe of its own.

    m ← μ m + (1 − μ) g,    v ← ρ v + (1 − ρ) g²,    θ ← θ − η (d + λ θ),    d = m̂ / (√v̂ + ε) or 20 m̂

with g the gradient of the mean cross entropy of a batch, hats for the usual corrections of the start, ρ = 0.99. A
network stands still after the last of its own steps. All recipes are arrays, so that there is one program.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from experiments.zoo.settings import Images, Recipes, apply_of

from weightscape.core import Tree
from weightscape.networks import Network

_DECAY = 0.99
_FLOOR = 1e-8
_PLAIN_FACTOR = 20.0
_TEST_ROWS = 250


class State(NamedTuple):
    """Weights θ and the running means m and v of gradients and their squares."""

    params: Tree
    first: Tree
    second: Tree


@eqx.filter_jit
def train_many(
    keys: jax.Array, network: Network, recipes: Recipes, images: Images, batch_size: int
) -> tuple[Tree, jax.Array]:
    """Weights of networks after training, and their accuracies on the test images, with a leading axis each.

    - `keys`: one for each network.  `batch_size`: the size to which batches are padded.
    """
    apply = apply_of(network)

    def steps(i: jax.Array, state: State) -> State:
        step = lambda key, recipe, state: _step(key, i, apply, recipe, state, batch(key, recipe))
        batch = lambda key, recipe: _batch(key, i, recipe, images, batch_size)
        return jax.vmap(step)(keys, recipes, state)

    state = jax.vmap(lambda key, recipe: _start(key, network, recipe, images))(keys, recipes)
    state = jax.lax.fori_loop(0, jnp.max(recipes.num_steps), steps, state)
    return state.params, _accuracies(apply, state.params, images)


class _Batch(NamedTuple):
    """Rows of a batch; `counts` is 1 for those that count."""

    x: jax.Array
    y: jax.Array
    counts: jax.Array


def _start(key: jax.Array, network: Network, recipe: Recipes, images: Images) -> State:
    params = network.init(jax.random.fold_in(key, 0), images.x_train[:1])
    params = jax.tree.map(lambda leaf: recipe.initial_scale * leaf, params)
    zeros = jax.tree.map(jnp.zeros_like, params)
    return State(params, zeros, zeros)


def _batch(key: jax.Array, i: jax.Array, recipe: Recipes, images: Images, size: int) -> _Batch:
    key_rows = jax.random.fold_in(jax.random.fold_in(key, 1), i)
    drawn = jnp.floor(jax.random.uniform(key_rows, (size,)) * recipe.num_points).astype(int)
    rows = (recipe.first_point + drawn) % len(images.x_train)
    places = (rows + recipe.noise_shift) % len(images.x_train)
    y = jnp.where(images.noise[places] < recipe.label_noise, images.other[places], images.y_train[rows])
    return _Batch(images.x_train[rows], y, (jnp.arange(size) < recipe.batch_size).astype(jnp.float32))


def _step(key: jax.Array, i: jax.Array, apply: Callable, recipe: Recipes, state: State, batch: _Batch) -> State:
    def loss(params: Tree) -> jax.Array:
        losses = optax.softmax_cross_entropy_with_integer_labels(apply(params, batch.x), batch.y)
        return jnp.sum(losses * batch.counts) / jnp.sum(batch.counts)

    def moved(leaf: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
        mean = m / (1 - recipe.momentum ** (i + 1))
        adam = mean / (jnp.sqrt(v / (1 - _DECAY ** (i + 1))) + _FLOOR)
        direction = jnp.where(recipe.is_adam, adam, _PLAIN_FACTOR * mean)
        return leaf - recipe.step_size * (direction + recipe.weight_decay * leaf)

    gradient = jax.grad(loss)(state.params)
    first = jax.tree.map(lambda m, g: recipe.momentum * m + (1 - recipe.momentum) * g, state.first, gradient)
    second = jax.tree.map(lambda v, g: _DECAY * v + (1 - _DECAY) * g**2, state.second, gradient)
    new = State(jax.tree.map(moved, state.params, first, second), first, second)
    return jax.tree.map(lambda after, before: jnp.where(i < recipe.num_steps, after, before), new, state)


def _accuracies(apply: Callable, params: Tree, images: Images) -> jax.Array:
    """The share of test images whose largest output is right, one stretch of images at a time."""
    size = min(_TEST_ROWS, len(images.x_test))
    cut = lambda leaf: leaf[: len(leaf) // size * size].reshape(-1, size, *leaf.shape[1:])
    right = lambda part: jax.vmap(lambda one: jnp.mean(jnp.argmax(apply(one, part[0]), -1) == part[1]))(params)
    return jnp.mean(jax.lax.map(right, (cut(images.x_test), cut(images.y_test))), axis=0)
