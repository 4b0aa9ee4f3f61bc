"""Where chains start."""

import jax
import jax.numpy as jnp
import numpy as np

from weightscape.core import PRNGKey
from weightscape.core.checks import require
from weightscape.core.keys import chain_keys
from weightscape.core.loop import map_chains
from weightscape.draws import Draws
from weightscape.posterior import Position, Posterior


def start_positions(key: PRNGKey, posterior: Posterior, num_chains: int, init: Draws | None) -> Position:
    """Positions with a leading chain axis, each with a finite log density.

    Without `init`, the network's own initial weights; with it, the last draws of its chains in turn.
    """
    if init is None:
        positions = map_chains(posterior.start_position, chain_keys(key, num_chains))
    else:
        last = jax.tree.map(lambda leaf: leaf[np.arange(num_chains) % init.num_chains, 0], init[:, -1].positions())
        positions = jax.tree.map(jnp.asarray, last)
    _require_finite_start(posterior, positions)
    return positions


def require_gradient(posterior: Posterior, method: str) -> None:
    """Raise where the prior is discrete, for methods that follow a gradient."""
    asked = f"{method} follows the gradient of the log density and must have a continuous prior"
    remedy = "Use MetropolisHastings with Flip proposals."
    require(not posterior.model.prior.is_discrete, asked, "discrete weights", remedy)


def _require_finite_start(posterior: Posterior, positions: Position) -> None:
    log_density = np.asarray(map_chains(posterior.log_density, positions))
    bad = np.flatnonzero(~np.isfinite(log_density)).tolist()
    remedy = "Check the data and the scales of prior and likelihood, or pass another `init`."
    require(not bad, "The log density must be finite where chains start", f"non-finite values in chains {bad}", remedy)
