"""The zoos: which networks, how many, on which images, and how widely their training varies."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from experiments.zoo.patches import apply_by_patches

import weightscape as ws
from weightscape.core import Tree
from weightscape.networks import ConvNet, Network


class Zoo(NamedTuple):
    """How many networks there are and how they are trained; `chunk_size` of them side by side.

    Each network's training steps are drawn from `steps`, points from `points`, points of a batch from `batch`: all
    log-uniform. The longest runs at most `steps[1]` steps; batches are padded to `batch[1]`.
    """

    num_networks: int
    chunk_size: int
    steps: tuple[int, int]
    points: tuple[int, int]
    batch: tuple[int, int]
    num_train: int | None
    num_test: int | None
    seed: int = 0


LARGE = Zoo(4000, 500, (30, 4000), (300, 60_000), (8, 64), None, None)
SMALL = Zoo(96, 48, (10, 150), (300, 2000), (8, 16), 2000, 500)

NETWORKS: dict[str, Network] = {
    "mlp": ws.networks.MLP(hidden=(16, 16), activation="tanh", outputs=10),
    "convnet": ws.networks.ConvNet(channels=(16, 16, 16), kernel=3, hidden=(), activation="relu", outputs=10),
}
"""196-16-16-10 with 3,594 weights, odd units; three convolutions with 4,970 weights, units that scale."""


class Images(NamedTuple):
    """MNIST at 14 × 14, standardised by one mean and scale, with labels.

    - `noise`, `other`: for each training image a uniform number and a label drawn at random, which it gets where the
      share of label noise exceeds the number. Each network reads them from a place of its own.
    """

    x_train: jax.Array
    y_train: jax.Array
    x_test: jax.Array
    y_test: jax.Array
    noise: jax.Array
    other: jax.Array


def images(kind: str, zoo: Zoo) -> Images:
    """The means of 2 × 2 pixels; as rows for an MLP."""
    data = ws.data.load("mnist", num_train=zoo.num_train, num_test=zoo.num_test)
    small = [np.asarray(part.x).reshape(-1, 14, 2, 14, 2, 1).mean((2, 4)) for part in (data.train, data.test)]
    mean, scale = small[0].mean(), small[0].std()
    shape = (-1, 196) if kind == "mlp" else (-1, 14, 14, 1)
    x_train, x_test = (jnp.asarray(((x - mean) / scale).reshape(shape), jnp.float32) for x in small)
    key_noise, key_other = jax.random.split(jax.random.key(zoo.seed + 1))
    noise = jax.random.uniform(key_noise, (len(x_train),))
    other = jax.random.randint(key_other, (len(x_train),), 0, 10)
    return Images(x_train, jnp.asarray(data.train.y), x_test, jnp.asarray(data.test.y), noise, other)


def apply_of(network: Network) -> Callable[[Tree, jax.Array], jax.Array]:
    """`network.apply`, in the form that is fast for many networks at once."""
    if isinstance(network, ConvNet):
        return lambda params, x: apply_by_patches(network, params, x)
    return network.apply


class Recipes(NamedTuple):
    """How each network is trained; every field has one entry for each network.

    - `step_size`, `momentum`, `weight_decay`: η, μ, λ.  `is_adam`: Adam, else plain momentum with a step 20 η.
    - `initial_scale`: what the usual initial weights are multiplied with.
    - `num_steps`, `batch_size`: steps, and points that count in each batch.
    - `first_point`, `num_points`: the stretch of training points that the network sees.
    - `label_noise`: the share of these that have a label drawn at random, the same one at every step.
    - `noise_shift`: where in `Images.noise` and `Images.other` the network begins.
    """

    step_size: jax.Array
    momentum: jax.Array
    weight_decay: jax.Array
    is_adam: jax.Array
    initial_scale: jax.Array
    num_steps: jax.Array
    batch_size: jax.Array
    first_point: jax.Array
    num_points: jax.Array
    label_noise: jax.Array
    noise_shift: jax.Array


def recipes(key: jax.Array, zoo: Zoo, num_train: int) -> Recipes:
    """Recipes of all networks, drawn independently; half have no label noise."""
    keys = iter(jax.random.split(key, len(Recipes._fields)))
    uniform = lambda low, high: jax.random.uniform(next(keys), (zoo.num_networks,), minval=low, maxval=high)
    log_uniform = lambda low, high: jnp.exp(uniform(np.log(low), np.log(high)))
    whole = lambda low, high: jnp.round(log_uniform(low, high)).astype(int)
    most_points = min(zoo.points[1], num_train)
    return Recipes(
        step_size=log_uniform(5e-4, 2e-2),
        momentum=uniform(0.0, 0.95),
        weight_decay=log_uniform(1e-4, 0.3),
        is_adam=uniform(0.0, 1.0) < 0.6,
        initial_scale=log_uniform(0.3, 2.0),
        num_steps=whole(*zoo.steps),
        batch_size=whole(*zoo.batch),
        first_point=jnp.floor(uniform(0.0, num_train)).astype(int),
        num_points=whole(min(zoo.points[0], most_points), most_points),
        label_noise=jnp.maximum(0.0, uniform(-0.6, 0.6)),
        noise_shift=jnp.floor(uniform(0.0, num_train)).astype(int),
    )
