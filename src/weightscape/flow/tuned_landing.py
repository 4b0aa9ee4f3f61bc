"""Steps of a landing that are as long as they can be: most of its trajectories are still accepted."""

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from weightscape.core.checks import InputError
from weightscape.core.types import PRNGKey, Scalar
from weightscape.flow.diffusion import Diffusion

_NUM_DRAWS = 32
_NUM_ROUNDS = 10
_NUM_BOLD = 5
_WANTED_ACCEPTANCE = 0.8
_GAIN = 4.0
_LONGEST = 2.0


def tuned_landing(key: PRNGKey, diffusion: Diffusion) -> Diffusion:
    """The diffusion with the step size at which four of five trajectories of its landing are accepted.

    A trajectory is half a turn at most. Weights are exact for every step size; this one makes them vary little.
    """
    landing = diffusion.landing
    if landing is None:
        raise InputError("`tuned_landing` must be given a Diffusion with a landing, got one without. Pass Landing().")
    for index in range(_NUM_ROUNDS):
        now = dataclasses.replace(diffusion, landing=landing)
        keys = jax.random.split(jax.random.fold_in(key, index), _NUM_DRAWS)
        excess = jnp.mean(_acceptances(now.bare(), keys)) - _WANTED_ACCEPTANCE
        longer = landing.step_size * jnp.exp(_GAIN * excess / max(1, index - _NUM_BOLD))
        longest = min(math.pi / landing.num_leapfrog, _LONGEST)
        landing = dataclasses.replace(landing, step_size=jnp.minimum(longer, longest))
    return dataclasses.replace(diffusion, landing=landing)


@eqx.filter_jit
def _acceptances(diffusion: Diffusion, keys: Key[Array, " draw"]) -> Float[Array, " draw"]:
    """Of the landings of a few draws."""

    def one(key: PRNGKey) -> Scalar:
        return diffusion.landed(key, diffusion.walked(key)[0]).acceptance

    return jax.vmap(one)(keys)
