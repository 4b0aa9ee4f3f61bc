"""The No-U-Turn Sampler: Hamiltonian Monte Carlo that finds the length of each trajectory itself.

A trajectory doubles, forwards or backwards at random, until its ends begin to approach each other; the next position is
drawn from its points with weights exp(−H), biased towards the newer half. It leaves p(z) invariant. The kernel is
blackjax's. Vectorised chains wait for the longest trajectory among them, which HMC with its shared lengths does not.

Reference: Hoffman & Gelman (2014), The No-U-Turn Sampler; Betancourt (2017), A conceptual introduction to Hamiltonian
Monte Carlo, appendix A.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from weightscape.core import PRNGKey, registered
from weightscape.core.checks import require_count
from weightscape.core.numbers import number
from weightscape.draws import Draws
from weightscape.inference.chains import Schedule, run_chains
from weightscape.inference.mcmc.kernels import nuts
from weightscape.inference.mcmc.mass import DiagonalMass, Mass
from weightscape.inference.mcmc.settings import require_chain_settings, require_target
from weightscape.inference.mcmc.transition import Transition, Tuning, energy_error, start_energy
from weightscape.inference.mcmc.warmup import Adaptive
from weightscape.inference.method import Circumstances, Method
from weightscape.inference.sampler import Notes
from weightscape.inference.start import require_gradient
from weightscape.posterior import Posterior

_KERNEL: Any = nuts.build_kernel()  # its annotations say float where a traced number is meant


@registered("inference.NUTS")
class NUTS(Method):
    """The No-U-Turn Sampler with warm-up.

    - `num_chains`, `num_draws`: how many chains, and draws kept of each.
    - `num_warmup`: transitions of warm-up; 0 keeps `step_size` as it is.
    - `max_depth`: how often a trajectory may double, so that it has at most 2^`max_depth` − 1 leapfrog steps.
    - `step_size`: ε, the first guess where warm-up adapts it.
    - `target_acceptance`: what warm-up aims at, averaged over a trajectory.
    - `mass`: what warm-up learns of M: `UnitMass()`, `DiagonalMass()` or `LowRankMass(rank)`.
    - `thin`: transitions for each draw kept.
    - `temperature`: T of the target p(D | θ)^(1/T) p(θ)^(1/T).
    """

    num_chains: int = eqx.field(static=True, default=4)
    num_draws: int = eqx.field(static=True, default=500)
    num_warmup: int = eqx.field(static=True, default=500)
    max_depth: int = eqx.field(static=True, default=10)
    step_size: Float[Array, ""] = eqx.field(default=0.05, converter=number)
    target_acceptance: Float[Array, ""] = eqx.field(default=0.8, converter=number)
    mass: Mass = eqx.field(default_factory=DiagonalMass)
    thin: int = eqx.field(static=True, default=1)
    temperature: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        require_chain_settings(self)
        require_target(self)
        require_count("`max_depth` of NUTS", self.max_depth)

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Draws:
        require_gradient(posterior, "NUTS")
        transition = NoUTurn(posterior.at_temperature(self.temperature), self.max_depth)
        num_warmup = jnp.asarray(self.num_warmup)
        sampler = Adaptive(transition, self.mass, self.step_size, self.target_acceptance, num_warmup)
        schedule = Schedule(self.num_chains, self.num_draws, self.num_warmup, self.thin)
        return run_chains(key, self, sampler, schedule, around)


class NoUTurn(Transition):
    """NUTS on a posterior; `energy_error` is that of the chosen point, and `is_accepted` says that it is a new one."""

    posterior: Posterior
    max_depth: int = eqx.field(static=True)

    def move(self, key: PRNGKey, chain: Any, tuning: Tuning, index: Int[Array, ""]) -> tuple[Any, Notes]:
        step_size, inverse_mass = tuning
        moved, info = _KERNEL(key, chain, self.posterior.log_density, step_size, inverse_mass, self.max_depth)
        differs = jax.tree.map(lambda new, old: jnp.any(new != old), moved.position, chain.position)
        notes = {
            "acceptance": info.acceptance_rate,
            "is_accepted": jnp.any(jnp.stack(jax.tree.leaves(differs))),
            "is_divergent": info.is_divergent,
            "energy": info.energy,
            "energy_error": energy_error(info.energy, start_energy(chain, info.momentum, inverse_mass)),
            "step_size": step_size,
            "num_leapfrog": jnp.asarray(info.num_integration_steps),
            "tree_depth": jnp.asarray(info.num_trajectory_expansions),
        }
        return moved, notes
