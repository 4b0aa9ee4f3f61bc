"""A single network as draws: one chain of one draw."""

import equinox as eqx
import jax
import numpy as np

from weightscape.core import Scalar
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


@eqx.filter_jit
def _at(posterior: Posterior, position: Position) -> tuple[Parameters, Scalar]:
    return posterior.constrain(position), posterior.log_density(position)
