"""An ensemble: many chains of HMC that share one step size and one mass, and learn both from each other.

M⁻¹ comes from the spread of the starts, all at once, as warm-up takes it from a window of one chain. Then

    log ε ← log ε + 2 (ā − a*)

after each of a few transitions, with ā the mean acceptance over chains and a* the wanted one. So many chains average
that ā is all but free of noise, and no damping is needed: near a* = 0.8 the slope of a over log ε is about −0.4 for a
leapfrog, whose energy error grows as ε², and one step takes away most of the distance.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, Key

from weightscape.core import PRNGKey, map_chains
from weightscape.inference.mcmc.kernels import hmc
from weightscape.inference.mcmc.mass import Mass
from weightscape.inference.mcmc.transition import Hamiltonian, Tuning
from weightscape.inference.sampler import Notes
from weightscape.posterior import Position, Posterior

_GAIN = 2.0


class Ensemble(NamedTuple):
    """Chains with a leading axis, the tuning they share, and what they did so far.

    - `chain`: position, log density and gradient of each.
    - `has_moved`: whether a chain ever accepted a proposal.
    - `num_gradients`: gradients used by each chain.  `num_done`: transitions so far.
    """

    chain: Any
    tuning: Tuning
    has_moved: Bool[np.ndarray, " chain"]
    num_gradients: int
    num_done: int


def begin(posterior: Posterior, positions: Position, mass: Mass, step_size: Float[Array, ""]) -> Ensemble:
    """All chains at their starts, with a mass learned from them."""
    chain = map_chains(_Begin(posterior), positions)
    num_chains = len(chain.logdensity)
    here = jax.tree.map(np.asarray, (chain.position, chain.logdensity_grad))
    return Ensemble(chain, Tuning(step_size, _inverse_mass(mass, *here)), np.zeros(num_chains, bool), 1, 0)


def advance(
    keys: Key[Array, " chain"], transition: Hamiltonian, ensemble: Ensemble
) -> tuple[Ensemble, Float[np.ndarray, " chain"]]:
    """The ensemble after one transition of every chain, and their acceptances."""
    chain, notes = map_chains(
        _Advance(transition, ensemble.tuning, jnp.asarray(ensemble.num_done)), keys, ensemble.chain
    )
    has_moved = ensemble.has_moved | np.asarray(notes["is_accepted"])
    num_gradients = ensemble.num_gradients + int(np.max(notes["num_leapfrog"]))
    after = Ensemble(chain, ensemble.tuning, has_moved, num_gradients, ensemble.num_done + 1)
    return after, np.asarray(notes["acceptance"], np.float64)


def retuned(ensemble: Ensemble, acceptance: Float[np.ndarray, " chain"], target: Float[Array, ""]) -> Ensemble:
    """The ensemble with a step size nearer to the wanted acceptance."""
    factor = jnp.exp(_GAIN * (acceptance.mean() - target))
    step_size = (ensemble.tuning.step_size * factor).astype(ensemble.tuning.step_size.dtype)
    return ensemble._replace(tuning=ensemble.tuning._replace(step_size=step_size))


class _Begin(eqx.Module):
    posterior: Posterior

    def __call__(self, position: Position) -> Any:
        return hmc.init(position, self.posterior.log_density)


class _Advance(eqx.Module):
    transition: Hamiltonian
    tuning: Tuning
    index: Int[Array, ""]

    def __call__(self, key: PRNGKey, chain: Any) -> tuple[Any, Notes]:
        return self.transition.move(jax.random.fold_in(key, self.index), chain, self.tuning, self.index)


@eqx.filter_jit
def _inverse_mass(mass: Mass, positions: Position, gradients: Position) -> Any:
    rows, slopes = (jax.vmap(lambda tree: ravel_pytree(tree)[0])(part) for part in (positions, gradients))
    if not mass.is_learned:
        return mass.first(rows[0])
    see = lambda record, seen: (mass.see(record, *seen), None)
    return mass.learn(jax.lax.scan(see, mass.begin(rows[0]), (rows, slopes))[0], mass.first(rows[0]))
