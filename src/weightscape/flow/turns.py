"""Rows of the data in turn: each look takes a few, and looks at other times take others.

    look k at time t takes the set of number b,      b = ⌊B t⌋ + k max(1, ⌊B / K⌋) (mod B),      B = ⌈N / rows⌉

with N rows of data and K looks k = 0, …, K − 1 at each time, which take different sets where there are enough, K ≤ B.
Set b has rows b, b + B, b + 2 B, …, or nearly these where N is no multiple of their number. On the way from time 0 to
time 1 each look passes through all sets, which together are all rows. A field that always looks at the same rows can
tell its networks no more than these know. Gradients of few rows are noise, though, which changes on the way where rows
do: in turn is worth a little where each look takes a third of all rows, and costs accuracy where it takes few
(`experiments/thesis_flows.md`).

Which rows it sees is a function of time, so the field is one, and the density of its flow is exact; but it jumps
between sets, and solvers of a high order have no such order there.
"""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from weightscape.core.types import Scalar
from weightscape.flow.target import Target
from weightscape.posterior import Posterior


def in_turn(target: Target, count: int, time: Scalar | float, look: Int[Array, ""], num_looks: int) -> Target:
    """The target with the `count` rows of a look at a time, each counting for several."""
    posterior = target.posterior
    if count >= posterior.num_points:
        return target
    return dataclasses.replace(target, posterior=at_rows(posterior, _rows(posterior, count, time, look, num_looks)))


def at_rows(posterior: Posterior, rows: Int[Array, " row"]) -> Posterior:
    """The posterior with these rows of its data, which count as much as all do."""
    power = posterior.likelihood_power * (posterior.num_points / len(rows))
    parts = (posterior.x[rows], posterior.y[rows], power)
    return eqx.tree_at(lambda p: (p.x, p.y, p.likelihood_power), posterior, parts)


def _rows(
    posterior: Posterior, count: int, time: Scalar | float, look: Int[Array, ""], num_looks: int
) -> Int[Array, " row"]:
    num_rows = posterior.num_points
    num_sets = -(-num_rows // count)
    apart = max(1, num_sets // num_looks)  # rounded down, so that the last look is not back at the set of the first
    turn = (jnp.floor(num_sets * time).astype(int) + look * apart) % num_sets
    evenly = np.argsort(np.arange(num_rows) % num_sets, kind="stable")
    return jnp.asarray(evenly)[(turn * count + jnp.arange(count)) % num_rows]
