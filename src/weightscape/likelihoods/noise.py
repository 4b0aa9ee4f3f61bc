"""Noise scales: fixed numbers, or unknown and inferred under a prior.

A scale is one number for all entries of a target, or one for each entry.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from weightscape.core.checks import require_count, require_positive
from weightscape.core.numbers import number
from weightscape.likelihoods.likelihood import Own
from weightscape.priors import Prior

NAME = "scale"
"""What an inferred scale is called among the likelihood's own parameters."""


def noise_scale(value: ArrayLike | tuple | list | Prior) -> Array | Prior:
    """The converter of scale fields: numbers become arrays, priors stay."""
    return value if isinstance(value, Prior) else number(value)


def check_scale(scale: Array | Prior, num_scales: int, likelihood: str) -> None:
    """Raise where a scale makes no sense."""
    require_count(f"`num_scales` of {likelihood}", num_scales)
    if not isinstance(scale, Prior):
        require_positive(f"`scale` of {likelihood}", scale)


def scale_prior(scale: Array | Prior) -> dict[str, Prior]:
    """The prior of the scale, where it is inferred."""
    return {NAME: scale} if isinstance(scale, Prior) else {}


def scale_shape(scale: Array | Prior, num_scales: int) -> dict[str, tuple[int, ...]]:
    """The shape of the scale, where it is inferred: one number, or one for each entry of a target."""
    return {NAME: () if num_scales == 1 else (num_scales,)} if isinstance(scale, Prior) else {}


def scale_information_root(
    scale: Array | Prior, own: Own, one: float | Array, outputs: Float[Array, "point output"]
) -> Float[Array, "point scale"]:
    """√I of an inferred scale σ at each point, where one entry of a target tells I = (one/σ)² about its own scale."""
    if not isinstance(scale, Prior):
        return jnp.zeros((len(outputs), 0), outputs.dtype)
    value = jnp.atleast_1d(own[NAME])
    entries = outputs.shape[1] if len(value) == 1 else 1  # how many entries share a scale
    return jnp.broadcast_to((np.sqrt(entries) * one / value)[None, :], (len(outputs), len(value)))


def current_scale(scale: Array | Prior, own: Own) -> Array:
    """The scale to use now, ready to meet an array of shape (point, target)."""
    value = own[NAME] if isinstance(scale, Prior) else scale
    return value if value.ndim == 0 else value[None, :]
