"""Fitting a model that gives the logit of a network's accuracy, and what its predictions are worth.

    loss = −a log p − (1 − a) log(1 − p),      p = 1 / (1 + exp(−model(weights)))

with a the accuracy: smallest at p = a, and as steep at accuracies near 1 as elsewhere.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from experiments.zoo.store import Parts, Trained
from scipy.stats import kendalltau

from weightscape import metanet
from weightscape.core import Tree
from weightscape.metanet.adam import adam_with_warmup
from weightscape.metanet.training import train

_ROWS = 64


class Reading(NamedTuple):
    """How models are fitted, and how often: with seeds 0 to `num_seeds` − 1."""

    num_seeds: int
    num_steps: int
    batch_size: int
    step_size: float
    weight_decay: float
    sizes: metanet.Sizes
    flat_width: int
    num_trees: int


LARGE = Reading(3, 6000, 64, 1e-3, 0.05, metanet.Sizes(width=64, edge_width=32, num_blocks=3, num_heads=4), 512, 300)
SMALL = Reading(2, 30, 16, 3e-3, 0.05, metanet.Sizes(width=16, edge_width=8, num_blocks=1, num_heads=2), 32, 20)


class Predicted(NamedTuple):
    """Predicted accuracies of the networks of two parts."""

    validation: np.ndarray
    test: np.ndarray


class Score(NamedTuple):
    """Kendall's τ, which asks for the order only, and R², the share of the variance that is explained."""

    kendall: float
    r2: float


def score(predicted: np.ndarray, part: Trained) -> Score:
    """τ and R² of predictions for a part; equal predictions order nothing, τ = 0."""
    left, spread = np.mean((predicted - part.accuracies) ** 2), np.var(part.accuracies)
    order = 0.0 if np.ptp(predicted) == 0 else float(kendalltau(predicted, part.accuracies).statistic)
    return Score(order, float(1 - left / spread))


def best(parts: Parts, candidates: Iterable[Predicted]) -> Predicted:
    """The candidate with the largest R² on the validation part."""
    return max(candidates, key=lambda each: score(each.validation, parts.validation).r2)


def fit(key: jax.Array, model: Any, parts: Parts, reading: Reading) -> Predicted:
    """Train a model of one network's weights on the training part; predict the others."""
    train_part = (jax.tree.map(jnp.asarray, parts.train.params), jnp.asarray(parts.train.accuracies))
    optimiser = adam_with_warmup(reading.step_size, reading.num_steps, weight_decay=reading.weight_decay)
    trained = train(
        key, model, _loss, train_part, num_steps=reading.num_steps, batch_size=reading.batch_size, optimiser=optimiser
    )
    parts_left = (jax.tree.map(jnp.asarray, part.params) for part in (parts.validation, parts.test))
    return Predicted(*(np.asarray(_predictions(trained.model, params)) for params in parts_left))


def _loss(model: Callable[[Tree], jax.Array], key: jax.Array, batch: tuple[Tree, jax.Array]) -> jax.Array:
    params, accuracies = batch
    return jnp.mean(optax.sigmoid_binary_cross_entropy(jax.vmap(model)(params)[:, 0], accuracies))


@eqx.filter_jit
def _predictions(model: Callable[[Tree], jax.Array], params: Tree) -> jax.Array:
    chance = lambda one: jax.nn.sigmoid(model(one)[0])
    return jax.lax.map(chance, params, batch_size=_ROWS)
