"""Hamiltonian Monte Carlo: the gold standard that other methods are measured against.

Chains start at the network's own initial weights (or at `init`), warm up, and are then run with fixed tuning; they are
sharded over devices and vectorised within each. Draws target p(θ | D) exactly as their number grows.

Reference: Neal (2011), MCMC using Hamiltonian dynamics, section 3.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, registered
from weightscape.core.checks import require, require_count, require_positive
from weightscape.core.numbers import number
from weightscape.draws import Draws
from weightscape.inference.chains import Schedule, run_chains
from weightscape.inference.mcmc.length import Duration, Steps
from weightscape.inference.mcmc.mass import DiagonalMass, Mass
from weightscape.inference.mcmc.settings import require_chain_settings, require_target
from weightscape.inference.mcmc.transition import Hamiltonian
from weightscape.inference.mcmc.warmup import Adaptive
from weightscape.inference.method import Circumstances, Method
from weightscape.inference.start import require_gradient
from weightscape.posterior import Posterior


@registered("inference.HMC")
class HMC(Method):
    """Hamiltonian Monte Carlo with warm-up.

    - `num_chains`, `num_draws`: how many chains, and draws kept of each.
    - `num_warmup`: transitions of warm-up; 0 keeps `step_size` as it is.
    - `num_leapfrog`: leapfrog steps of a transition, on average.
    - `trajectory`: how long a trajectory is instead, on average: it has round(`trajectory` / ε) leapfrog steps, at
      least 1 and at most 1024. With a learned mass the posterior has unit scale, so π/2 is a quarter of a period.
    - `jitter`: trajectories vary by this fraction around their length; 0 makes all equally long.
    - `step_size`: ε, the first guess where warm-up adapts it.
    - `target_acceptance`: what warm-up aims at.
    - `mass`: what warm-up learns of M: `UnitMass()`, `DiagonalMass()` or `LowRankMass(rank)`.
    - `thin`: transitions for each draw kept.
    - `temperature`: T of the target p(D | θ)^(1/T) p(θ)^(1/T).
    """

    num_chains: int = eqx.field(static=True, default=4)
    num_draws: int = eqx.field(static=True, default=500)
    num_warmup: int = eqx.field(static=True, default=500)
    num_leapfrog: int = eqx.field(static=True, default=32)
    trajectory: Float[Array, ""] | None = eqx.field(default=None, converter=lambda x: None if x is None else number(x))
    jitter: Float[Array, ""] = eqx.field(default=0.5, converter=number)
    step_size: Float[Array, ""] = eqx.field(default=0.05, converter=number)
    target_acceptance: Float[Array, ""] = eqx.field(default=0.8, converter=number)
    mass: Mass = eqx.field(default_factory=DiagonalMass)
    thin: int = eqx.field(static=True, default=1)
    temperature: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        require_chain_settings(self)
        require_target(self)
        require_count("`num_leapfrog` of HMC", self.num_leapfrog)
        if self.trajectory is not None:
            require_positive("`trajectory` of HMC", self.trajectory)
        jitter = float(self.jitter)
        require(0 <= jitter <= 1, "`jitter` of HMC must lie between 0 and 1", jitter, "Pass a fraction such as 0.5.")

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Draws:
        require_gradient(posterior, "HMC")
        num_warmup = jnp.asarray(self.num_warmup)
        sampler = Adaptive(self.transition(posterior), self.mass, self.step_size, self.target_acceptance, num_warmup)
        schedule = Schedule(self.num_chains, self.num_draws, self.num_warmup, self.thin)
        return run_chains(key, self, sampler, schedule, around)

    def transition(self, posterior: Posterior) -> Hamiltonian:
        """One transition on `posterior`, at the temperature and of the length that are set here."""
        fixed, given = Steps(jnp.asarray(self.num_leapfrog), self.jitter), self.trajectory
        length = fixed if given is None else Duration(given, self.jitter)
        return Hamiltonian(posterior.at_temperature(self.temperature), length)
