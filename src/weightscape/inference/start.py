"""Finding the positions where chains start, and making sure that they can."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from weightscape.core import PRNGKey, Progress
from weightscape.core.checks import require, require_type, shape_of
from weightscape.core.keys import chain_keys
from weightscape.core.loop import map_chains
from weightscape.draws import Draws, draw_weights, systematic
from weightscape.inference.approximation import Approximation
from weightscape.inference.method import Init, Method
from weightscape.inference.starts import FromNetwork, Start
from weightscape.posterior import Position, Posterior


def start_positions(key: PRNGKey, posterior: Posterior, num_chains: int, init: Init, progress: Progress) -> Position:
    """Positions with a leading chain axis, each with a finite log density."""
    key_method, key_chains = jax.random.split(key)
    start = init.run(key_method, posterior, progress=progress) if isinstance(init, Method) else init
    if isinstance(start, Draws):
        positions = _taken(start, _which(key_chains, start, num_chains))
    elif isinstance(start, Approximation):
        positions = map_chains(start.bare().sample_position, chain_keys(key_chains, num_chains))
    else:
        start = FromNetwork() if start is None else start
        remedy = "Pass Draws, a method such as `MAP()` or `DeepEnsemble()`, `FromPrior()` or `FromNetwork()`."
        require_type(isinstance(start, Start), "`init` must say where chains start", type(start).__name__, remedy)
        positions = map_chains(_From(start, posterior), chain_keys(key_chains, num_chains))
    _require_fitting(posterior, positions)
    _require_finite_start(posterior, positions)
    return positions


def require_gradient(posterior: Posterior, method: str) -> None:
    """Raise where the prior is discrete, for methods that follow a gradient."""
    asked = f"{method} follows the gradient of the log density and must have a continuous prior"
    remedy = "Use MetropolisHastings with Flip proposals."
    require(not posterior.model.prior.is_discrete, asked, "discrete weights", remedy)


class _From(eqx.Module):
    """One chain's start, as a function of its key."""

    start: Start
    posterior: Posterior

    def __call__(self, key: PRNGKey) -> Position:
        return self.start.sample(key, self.posterior)


def _which(key: PRNGKey, init: Draws, num_chains: int) -> tuple[np.ndarray, np.ndarray]:
    """The chain and the draw that each new chain starts at: the last of every chain in turn, then earlier ones.

    Weighted draws are taken with the probability of their weights.
    """
    if init.log_weights is not None:
        flat = systematic(float(jax.random.uniform(key)), draw_weights(init).ravel(), num_chains)
        return flat // init.num_draws, flat % init.num_draws
    rounds = -(-num_chains // init.num_chains)
    back = np.arange(num_chains) // init.num_chains * init.num_draws // rounds
    return np.arange(num_chains) % init.num_chains, init.num_draws - 1 - back


def _taken(init: Draws, which: tuple[np.ndarray, np.ndarray]) -> Position:
    starts = init.map_leaves(lambda leaf: np.asarray(leaf)[which][:, None])
    return jax.tree.map(lambda leaf: jnp.asarray(leaf[:, 0]), starts.positions())


def _require_fitting(posterior: Posterior, positions: Position) -> None:
    """Raise where starts are those of another network: an MLP would take any width without a word."""
    own = jax.eval_shape(posterior.start_position, jax.random.key(0))
    wanted, came = (
        [shape_of(leaf)[skipped:] for leaf in jax.tree.leaves(tree)] for tree, skipped in ((own, 0), (positions, 1))
    )
    asked = f"`init` must hold weights of the posterior's shapes {wanted}"
    require(wanted == came, asked, came, "Start from draws of this network; `flow.transfer` moves flows to it.")


def _require_finite_start(posterior: Posterior, positions: Position) -> None:
    log_density = np.asarray(map_chains(posterior.log_density, positions))
    bad = np.flatnonzero(~np.isfinite(log_density)).tolist()
    remedy = "Check the data and the scales of prior and likelihood, or pass another `init`."
    require(not bad, "The log density must be finite where chains start", f"non-finite values in chains {bad}", remedy)
