"""A single network as draws: one chain of one draw."""

import jax
import numpy as np

from weightscape.core.facts import Facts
from weightscape.draws.draws import Draws
from weightscape.posterior import Position, Posterior


def point(posterior: Posterior, position: Position) -> Draws:
    """The parameters at a position, which may have been found elsewhere, with their log p(D, θ).

    Parameters θ, weights that another program trained, say, have the position `posterior.unconstrain(θ)`.
    """
    lone = jax.tree.map(lambda leaf: np.asarray(leaf)[None, None], posterior.constrain(position))
    log_density = np.asarray(posterior.log_density(position))[None, None]
    return Draws(lone, log_density, posterior.model, posterior.scaling, posterior.example, facts=Facts(method="point"))
