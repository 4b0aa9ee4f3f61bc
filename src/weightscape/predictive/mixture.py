"""Mixture: the components of all draws at all points, summarised chunk by chunk.

p(y | x, D) ≈ Σ_i w_i p(y | f(x; θ_i), φ_i)
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from weightscape.core.types import Tree
from weightscape.likelihoods import Own
from weightscape.predictive.components import Components
from weightscape.predictive.marginal import Density
from weightscape.predictive.outputs import Outputs, pad_rows


class Mixture(eqx.Module):
    """One component for each draw.

    - `likelihood`: the density of a component.
    - `outputs`: the network's outputs of all draws, held or recomputed.
    - `own`, `weights`: φ_i and w_i, padded like the outputs.
    """

    likelihood: Density
    outputs: Outputs
    own: Own
    weights: Float[Array, " draw"]

    @property
    def num_points(self) -> int:
        """How many inputs there are."""
        return self.outputs.plan.num_points

    @property
    def num_draws(self) -> int:
        """How many components there are, without padding."""
        return self.outputs.plan.num_draws

    def summarise(self, function: Callable[..., Tree], *pointwise: Shaped[Array | np.ndarray, "point ..."]) -> Any:
        """`function(likelihood, components, *pointwise)` of every chunk, joined along the points.

        - `function`: a function or a pytree callable; it returns arrays with the point first.
        - `pointwise`: arrays with one row for each point, cut into chunks alongside.
        """
        parts = []
        for points, outputs in self.outputs.chunks():
            rows = [jnp.asarray(pad_rows(np.asarray(array)[points], outputs.shape[1])) for array in pointwise]
            result = _call(function, self.likelihood, Components(outputs, self.own, self.weights), rows)
            num_rows = points.stop - points.start
            parts.append(jax.tree.map(lambda leaf, num_rows=num_rows: np.asarray(leaf)[:num_rows], result))
        # Joined on the host: compiling a program for every number of points would cost more than the copy.
        return jax.tree.map(lambda *leaves: jnp.asarray(np.concatenate(leaves)), *parts)


@eqx.filter_jit
def _call(function: Callable[..., Tree], likelihood: Density, components: Components, rows: list[Array]) -> Tree:
    return function(likelihood, components, *rows)
