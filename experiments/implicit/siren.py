"""Implicit representations: one small sine network for each image, fitted to its pixels.

    f(u, v) = h_2 W_3 + b_3,      h_l = sin(ω₀ (h_{l-1} W_l + b_l)),      h_0 = (u, v) in [−1, 1]²

    W_1 ~ U(±1 / n),    W_l ~ U(±√(6 / n) / ω₀),    b_l ~ U(±π / 2ω₀),    b_3 = 0          n inputs of the layer

Weights start as in Sitzmann et al. (2020), section 3.2. Shifts are our choice: by sin(z + π) = −sin(z) all phases are
equivalent to one within half a period, so uniform ones there are uniform ones everywhere, and no network starts with
another's equivalent phase.

Every network minimises the mean squared error over all pixels by Adam, with a cosine schedule.
"""

import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from experiments.implicit.settings import Fitting
from jaxtyping import Array, Float

import weightscape as ws
from weightscape.core import PRNGKey, Scalar, Tree

STORED = jnp.float16
"""The type that weights are rounded to; the errors of the pictures are taken after that."""


class Fitted(NamedTuple):
    """Rounded weights, with one leading axis, and −10 log₁₀ of the mean squared error of each, in dB."""

    params: Tree
    psnr: Float[Array, " image"]


def network(fitting: Fitting) -> ws.networks.MLP:
    """The sine network; products are of float32 on every device."""
    return ws.networks.MLP(fitting.hidden, _sine(fitting.frequency), outputs=1, precision="float32")


def pixels(num_pixels: int) -> Float[Array, "pixel 2"]:
    """The places (u, v) of a square image, row by row."""
    along = np.linspace(-1.0, 1.0, round(num_pixels**0.5), dtype=np.float32)
    return jnp.asarray(np.stack(np.meshgrid(along, along, indexing="ij"), axis=-1).reshape(-1, 2))


def start(key: PRNGKey, fitting: Fitting) -> Tree:
    """Weights to start from."""
    sizes, frequency = (2, *fitting.hidden, 1), fitting.frequency
    params = {}
    for i, (inputs, units) in enumerate(itertools.pairwise(sizes)):
        key_weight, key_bias = jax.random.split(jax.random.fold_in(key, i))
        widest = 1 / inputs if i == 0 else (6 / inputs) ** 0.5 / frequency
        phase = 0.0 if i == len(fitting.hidden) else np.pi / (2 * frequency)
        params[f"layer{i}"] = {
            "weight": widest * jax.random.uniform(key_weight, (inputs, units), minval=-1.0),
            "bias": phase * jax.random.uniform(key_bias, (units,), minval=-1.0),
        }
    return params


@eqx.filter_jit
def fit_images(key: PRNGKey, images: Float[Array, "image pixel"], fitting: Fitting) -> Fitted:
    """A network for each image, each from a start of its own; `group_size` are fitted side by side."""
    keys = jax.random.split(key, len(images))
    one = lambda pair: _fit(pair[0], pair[1], fitting)
    return jax.lax.map(one, (keys, images), batch_size=min(fitting.group_size, len(images)))


def render(params: Tree, fitting: Fitting, num_pixels: int) -> Float[Array, " pixel"]:
    """The image that a network stands for."""
    return network(fitting).apply(params, pixels(num_pixels))[:, 0]


def _fit(key: PRNGKey, image: Float[Array, " pixel"], fitting: Fitting) -> Fitted:
    optimiser = optax.adam(optax.cosine_decay_schedule(fitting.step_size, fitting.num_steps))
    loss = lambda params: jnp.mean((render(params, fitting, image.size) - image) ** 2)

    def step(carry: tuple, _: None) -> tuple[tuple, None]:
        params, memory = carry
        update, memory = optimiser.update(jax.grad(loss)(params), memory)
        return (optax.apply_updates(params, update), memory), None

    params = start(key, fitting)
    (params, _), _ = jax.lax.scan(step, (params, optimiser.init(params)), length=fitting.num_steps)
    rounded = jax.tree.map(lambda leaf: leaf.astype(STORED), params)
    return Fitted(rounded, _psnr(loss(jax.tree.map(lambda leaf: leaf.astype(jnp.float32), rounded))))


def _psnr(mean_squared_error: Scalar) -> Scalar:
    return -10 * jnp.log10(mean_squared_error)


@functools.cache
def _sine(frequency: float) -> Callable[[Array], Array]:
    """One function for each ω₀, so that equal networks are equal."""
    return lambda z: jnp.sin(frequency * z)
