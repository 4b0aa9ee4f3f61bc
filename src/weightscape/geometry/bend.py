"""Mode connectivity: the bend that makes the loss along a path of two lines small.

    bend = argmin_m E_{t ~ U(0, 1)} loss(path_{a, m, b}(t))

by Adam, with one time for each step and a cosine step size. It starts in the middle of the straight line.

Reference: Garipov, Izmailov, Podoprikhin, Vetrov & Wilson (2018), Loss surfaces, mode connectivity, and fast ensembling
of DNNs, equation 2. The times are uniform in t, not in length, as in the paper.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

from weightscape.core.checks import require_count, require_positive
from weightscape.core.keys import require_key
from weightscape.core.numbers import number
from weightscape.core.types import PRNGKey, Scalar, Tree
from weightscape.geometry.paths import Linear, OneBend


def train_bend(
    key: PRNGKey,
    loss: Callable[[Tree], Scalar],
    start: Tree,
    end: Tree,
    *,
    num_steps: int = 1000,
    learning_rate: float | Array = 0.01,
) -> OneBend:
    """The path of one bend from `start` to `end` along which `loss` is small on average."""
    require_key(key, "train_bend")
    require_count("`num_steps` of train_bend", num_steps)
    require_positive("`learning_rate` of train_bend", learning_rate)
    start, end = (jax.tree.map(jnp.asarray, params) for params in (start, end))
    return _train(key, loss, Linear(start, end), jnp.asarray(num_steps), number(learning_rate))


@eqx.filter_jit
def _train(
    key: PRNGKey, loss: Callable[[Tree], Scalar], line: Linear, num_steps: Array, learning_rate: Scalar
) -> OneBend:
    adam = optax.scale_by_adam()

    def step(i: Array, carry: tuple[Tree, Any]) -> tuple[Tree, Any]:
        bend, moments = carry
        t = jax.random.uniform(jax.random.fold_in(key, i))
        gradient = jax.grad(lambda bend: loss(OneBend(line.start, bend, line.end).at(t)))(bend)
        direction, moments = adam.update(gradient, moments)
        rate = 0.5 * learning_rate * (1 + jnp.cos(jnp.pi * i / num_steps))
        return jax.tree.map(lambda old, d: old - rate.astype(old.dtype) * d, bend, direction), moments

    middle = line.at(jnp.asarray(0.5))
    bend, _ = jax.lax.fori_loop(0, num_steps, step, (middle, adam.init(middle)))
    return OneBend(line.start, bend, line.end)
