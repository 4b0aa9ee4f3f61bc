"""One network at a position, as draws like given ones."""

import equinox as eqx
import jax
import numpy as np

from weightscape.core.facts import Facts
from weightscape.draws import Draws, Header
from weightscape.posterior import Joint, Parameters, Position


def network_at(header: Header, position: Position, facts: Facts) -> Draws:
    """One chain of one draw, of the model in `header`, whose log p(D, θ) is not known: NaN."""
    lone = jax.tree.map(lambda leaf: np.asarray(leaf)[None, None], _parameters(header.model, position))
    dtype = np.result_type(*(leaf.dtype for leaf in jax.tree.leaves(position)))
    return Draws(lone, np.full((1, 1), np.nan, dtype), *header, facts=facts)


@eqx.filter_jit
def _parameters(model: Joint, position: Position) -> Parameters:
    return model.place(position).parameters
