"""Adam with decoupled weight decay, clipped gradients, warm-up and a cosine step size.

    θ ← θ − η_i (Adam(g min(1, c / ‖g‖)) + λ θ),      η_i = η · min(1, (i + 1) / w) · (1 + cos(π i / n)) / 2

over n steps, w of them warm-up. Only weights with two axes or more decay.

Reference: Loshchilov & Hutter (2019), Decoupled weight decay regularization, algorithm 2.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, ArrayLike, Int

from weightscape.core import Scalar, Tree, tree
from weightscape.core.checks import require_count, require_fraction, require_positive
from weightscape.core.numbers import number


class AdamWithWarmup(eqx.Module):
    """AdamW on clipped gradients with step size η_i; made by `adam_with_warmup`."""

    step_size: Scalar
    num_steps: Scalar
    num_warmup: Scalar
    weight_decay: Scalar
    largest_norm: Scalar

    def init(self, params: Tree) -> Any:
        return optax.scale_by_adam().init(params)

    def update(self, gradient: Tree, state: Any, params: Tree) -> tuple[Tree, Any]:
        shrunk = jnp.minimum(1.0, self.largest_norm / tree.norm(gradient))
        clipped = jax.tree.map(lambda g: g * shrunk.astype(g.dtype), gradient)
        rate = self.rate(state.count)
        direction, state = optax.scale_by_adam().update(clipped, state)
        decay = lambda leaf: self.weight_decay if leaf.ndim > 1 else jnp.zeros_like(self.weight_decay)
        return jax.tree.map(lambda d, leaf: -rate * (d + decay(leaf) * leaf), direction, params), state

    def rate(self, index: Int[Array, ""]) -> Scalar:
        """η_i."""
        rise = jnp.minimum(1.0, (index + 1) / self.num_warmup)
        return 0.5 * self.step_size * rise * (1 + jnp.cos(jnp.pi * jnp.minimum(1.0, index / self.num_steps)))


def adam_with_warmup(
    step_size: ArrayLike,
    num_steps: int,
    *,
    warmup: float = 0.05,
    weight_decay: ArrayLike = 0.01,
    largest_norm: ArrayLike = 1.0,
) -> AdamWithWarmup:
    """AdamW with linear warm-up and a cosine decay to zero over n = `num_steps`.

    - `step_size`: η.  `warmup`: the share of the steps that are warm-up, w / n.
    - `weight_decay`: λ.  `largest_norm`: c, the norm to which longer gradients are clipped.
    """
    require_positive("`step_size` of adam_with_warmup", step_size)
    require_count("`num_steps` of adam_with_warmup", num_steps)
    require_fraction("`warmup` of adam_with_warmup", warmup)
    require_positive("`largest_norm` of adam_with_warmup", largest_norm)
    num_warmup = max(1.0, warmup * num_steps)
    return AdamWithWarmup(*map(number, (step_size, num_steps, num_warmup, weight_decay, largest_norm)))
