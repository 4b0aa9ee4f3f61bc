"""Parameters for a test, drawn with numpy: away from the special values at which they start, and quick to make."""

import jax
import jax.numpy as jnp
import numpy as np


def filled(network, x, seed=0):
    """A tree like `network.init(key, x)`: matrices keep the size of signals, vectors are positive or negative."""
    random = np.random.default_rng(seed)

    def fill(leaf):
        fan_in = np.prod(leaf.shape[:-1]) if len(leaf.shape) > 1 else 4.0
        return jnp.asarray(0.2 * (len(leaf.shape) == 1) + random.normal(size=leaf.shape) / np.sqrt(fan_in))

    return jax.tree.map(fill, jax.eval_shape(network.init, jax.random.key(0), x))
