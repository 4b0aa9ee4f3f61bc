"""Two readers that know no symmetry: boosted trees on statistics of the weights, and an MLP on the weights in a row.

    statistics of a leaf w:   mean w, var w, and the quantiles 0, 25, 50, 75 and 100 % of its entries

Reference: Unterthiner et al. (2020), section 4: statistics of each layer's kernel and bias, and boosted trees.
"""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from experiments.zoo.fitting import Predicted, Reading, best, fit
from experiments.zoo.store import Parts
from sklearn.ensemble import HistGradientBoostingRegressor

from weightscape.core import Tree

_QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
_RATES = (0.02, 0.05, 0.1)
_LEAVES = (7, 15, 31)
_DECAYS = (0.01, 1.0)
_SHORTER = (1, 4, 20)


def statistics(params: Tree) -> np.ndarray:
    """Seven numbers for each leaf, a row for each network."""
    columns = []
    for leaf in jax.tree.leaves(params):
        rows = np.asarray(leaf, np.float64).reshape(len(leaf), -1)
        columns += [rows.mean(1), rows.var(1), *np.quantile(rows, _QUANTILES, axis=1)]
    return np.stack(columns, axis=1)


def boosted_trees(seed: int, parts: Parts, reading: Reading) -> Predicted:
    """Trees on statistics; step size and leaves are those that do best on the validation part."""
    x_train, x_validation, x_test = (statistics(part.params) for part in parts)

    def fitted(rate: float, leaves: int) -> Predicted:
        trees = HistGradientBoostingRegressor(
            learning_rate=rate, max_leaf_nodes=leaves, max_iter=reading.num_trees, max_features=0.5, random_state=seed
        )
        trees.fit(x_train, parts.train.accuracies)
        return Predicted(trees.predict(x_validation), trees.predict(x_test))

    return best(parts, (fitted(*choice) for choice in itertools.product(_RATES, _LEAVES)))


class FlatMLP(eqx.Module):
    """An MLP of all weights in a row, each standardised over the training networks."""

    network: eqx.nn.MLP
    mean: jax.Array
    scale: jax.Array

    def __call__(self, params: Tree) -> jax.Array:
        mean, scale = jax.lax.stop_gradient((self.mean, self.scale))
        return self.network((_in_a_row(params) - mean) / scale)


def flat_mlp(seed: int, parts: Parts, reading: Reading) -> Predicted:
    """An MLP with the weight decay and the number of steps that do best on the validation part."""
    key_init, key_train = jax.random.split(jax.random.key(seed))
    rows = jax.vmap(_in_a_row)(parts.train.params)
    mean, scale = jnp.mean(rows, axis=0), jnp.std(rows, axis=0) + 1e-6
    model = FlatMLP(eqx.nn.MLP(rows.shape[1], 1, reading.flat_width, 2, key=key_init), mean, scale)
    settings = (
        reading._replace(weight_decay=decay, num_steps=max(1, reading.num_steps // times))
        for decay, times in itertools.product(_DECAYS, _SHORTER)
    )
    return best(parts, (fit(key_train, model, parts, each) for each in settings))


def _in_a_row(params: Tree) -> jax.Array:
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(params)])
