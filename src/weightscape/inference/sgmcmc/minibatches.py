"""Gradients of the log density from a few points.

    ĝ(θ) = (N/B) Σ_{i ∈ batch} ∇ log p(y_i | f(x_i; θ)) + ∇ log p(θ)

is an unbiased estimate of the gradient of the sum over all N points, with a batch of B points drawn uniformly and with
replacement at each step.
"""

import equinox as eqx
import jax

from weightscape.core import PRNGKey
from weightscape.posterior import Position, Posterior


class Minibatches(eqx.Module):
    """Gradient estimates; `batch_size` is B, None takes all points and is exact."""

    batch_size: int | None = eqx.field(static=True)

    def gradient(self, key: PRNGKey, posterior: Posterior, position: Position) -> Position:
        """ĝ at a position."""
        if self.batch_size is None:
            return jax.grad(posterior.log_density)(position)
        return _estimate(key, posterior, position, self.batch_size)

    def halves(self, key: PRNGKey, posterior: Posterior, position: Position) -> tuple[Position, Position]:
        """Two independent estimates from half a batch each; their mean has the distribution of ĝ."""
        assert self.batch_size is not None
        key_first, key_second = jax.random.split(key)
        half = self.batch_size // 2
        return _estimate(key_first, posterior, position, half), _estimate(key_second, posterior, position, half)


def _estimate(key: PRNGKey, posterior: Posterior, position: Position, num_points: int) -> Position:
    indices = jax.random.randint(key, (num_points,), 0, posterior.num_points)
    return jax.grad(posterior.log_density_estimate)(position, indices)
