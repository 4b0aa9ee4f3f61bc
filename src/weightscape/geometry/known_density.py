"""Draws whose weights were changed: what was known of their density holds no more."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.draws import Draws
from weightscape.posterior import Parameters, Posterior


def with_density(draws: Draws, posterior: Posterior | None) -> Draws:
    """The draws with log p(D, θ) under `posterior`, NaN where there is none; notes and proposal densities are dropped.

    Importance weights stay: they say how much each draw counts.
    """
    if posterior is None:
        log_density = np.full(draws.log_density.shape, np.nan, draws.log_density.dtype)
    else:
        log_density = np.asarray(_log_density(posterior, jax.tree.map(jnp.asarray, draws.params)))
    return dataclasses.replace(draws, log_density=log_density, info={}, log_proposal=None)


@eqx.filter_jit
def _log_density(posterior: Posterior, params: Parameters) -> Float[Array, "chain draw"]:
    one = lambda parameters: posterior.log_density(posterior.unconstrain(parameters))
    return jax.lax.map(lambda chain: jax.lax.map(one, chain), params)
