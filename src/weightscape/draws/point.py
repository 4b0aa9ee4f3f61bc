"""A single network as draws: one chain of one draw."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from weightscape.core import Scalar
from weightscape.core.checks import require
from weightscape.core.facts import Facts
from weightscape.draws.draws import Draws
from weightscape.posterior import Parameters, Position, Posterior


def point(posterior: Posterior, position: Position) -> Draws:
    """The parameters at a position, which may have been found elsewhere, with their log p(D, θ).

    Parameters θ, weights that another program trained, say, have the position `posterior.unconstrain(θ)`.
    """
    params, log_density = _at(posterior, position)
    lone = jax.tree.map(lambda leaf: np.asarray(leaf)[None, None], params)
    return Draws(
        lone,
        np.asarray(log_density)[None, None],
        posterior.model,
        posterior.scaling,
        posterior.example,
        facts=Facts(method="point"),
    )


def best_position(draws: Draws) -> Position:
    """The position of highest density among draws."""
    finite = bool(np.any(np.isfinite(draws.log_density))) or len(draws) == 1
    remedy = "Pass the posterior when loading an approximation, so that its draws know their density."
    require(finite, "Draws of which the best one is taken must have a finite log density", "none", remedy)
    best = np.nanargmax(draws.log_density) if len(draws) > 1 else 0
    chain, draw = np.unravel_index(best, draws.log_density.shape)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf[0, 0]), draws[int(chain), int(draw)].positions())


@eqx.filter_jit
def _at(posterior: Posterior, position: Position) -> tuple[Parameters, Scalar]:
    return posterior.constrain(position), posterior.log_density(position)
