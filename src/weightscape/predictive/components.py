"""The predictive distribution is a mixture with one component for each draw.

    p(y | x, D) ≈ Σ_i w_i p(y | f(x; θ_i), φ_i),        Σ_i w_i = 1

w_i are importance weights, or 1/n; φ_i are the likelihood's own parameters.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.types import Tree
from weightscape.draws import Draws
from weightscape.likelihoods import Own
from weightscape.predictive.marginal import RegressionDensity


class Components(eqx.Module):
    """All components at some points.

    - `outputs`: the network's outputs of each draw.
    - `own`: φ, the likelihood's own parameters, with the draw first.
    - `weights`: w, summing to one; padding has weight zero.
    """

    outputs: Float[Array, "draw point output"]
    own: Own
    weights: Float[Array, " draw"]

    def average(self, values: Float[Array, "draw *rest"]) -> Float[Array, "*rest"]:
        """Σ_i w_i values_i, in two levels of sums."""
        # One long float32 sum of equal terms drifts by n/2 roundings; two sums of √n terms do not.
        num_draws = len(self.weights)
        block_size = math.gcd(num_draws, 2 ** (num_draws.bit_length() // 2))
        weighted = self.weights.reshape(-1, *[1] * (values.ndim - 1)) * values
        blocks = weighted.reshape(num_draws // block_size, block_size, *values.shape[1:])
        return jnp.sum(jnp.sum(blocks, axis=0), axis=0)

    def cumulative(
        self, likelihood: RegressionDensity, z: Float[Array, "point target"]
    ) -> Float[Array, "point target"]:
        """F(z) = Σ_i w_i P(Y ≤ z | f(x; θ_i), φ_i), entry by entry."""
        each = jax.vmap(lambda outputs, own: likelihood.cumulative(outputs, z, own))(self.outputs, self.own)
        return self.average(each)


def flat_own(draws: Draws, padded_draws: int) -> Tree:
    """The likelihood's own parameters on one draw axis, the last one repeated up to `padded_draws`."""

    def flatten(leaf: Array | np.ndarray) -> Array:
        flat = np.asarray(leaf).reshape(-1, *np.shape(leaf)[2:])  # a scale for each entry of a target stays apart
        missing = [(0, padded_draws - len(flat)), *((0, 0) for _ in flat.shape[1:])]
        return jnp.asarray(np.pad(flat, missing, mode="edge"))

    return {name: flatten(leaf) for name, leaf in draws.params.likelihood.items()}
