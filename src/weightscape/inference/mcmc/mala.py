"""The Metropolis-adjusted Langevin algorithm: Hamiltonian Monte Carlo with one leapfrog step.

    z' = z + (h/2) M⁻¹ ∇log p(z) + √h M^-½ ξ,   ξ ~ N(0, I),   accepted with probability min(1, exp(−ΔH))

is one leapfrog step of size ε with h = ε². It leaves p(z) invariant. Each transition takes one gradient and moves like
a random walk: where scales differ by a factor κ an independent draw takes about κ² of them, and κ with trajectories of
Hamiltonian Monte Carlo. It is what stochastic-gradient Langevin dynamics approximates.

Reference: Roberts & Rosenthal (1998), Optimal scaling of discrete approximations to Langevin diffusions: the best
acceptance is 0.574 in many dimensions.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, registered
from weightscape.core.numbers import number
from weightscape.draws import Draws
from weightscape.inference.chains import Schedule, run_chains
from weightscape.inference.mcmc.length import Steps
from weightscape.inference.mcmc.mass import DiagonalMass, Mass
from weightscape.inference.mcmc.settings import require_chain_settings, require_target
from weightscape.inference.mcmc.transition import Hamiltonian
from weightscape.inference.mcmc.warmup import Adaptive
from weightscape.inference.method import Circumstances, Method
from weightscape.inference.start import require_gradient
from weightscape.posterior import Posterior


@registered("inference.MALA")
class MALA(Method):
    """Metropolis-adjusted Langevin dynamics with warm-up.

    - `num_chains`, `num_draws`: how many chains, and draws kept of each.
    - `num_warmup`: transitions of warm-up; 0 keeps `step_size` as it is.
    - `step_size`: ε = √h, the first guess where warm-up adapts it.
    - `target_acceptance`: what warm-up aims at.
    - `mass`: what warm-up learns of M: `UnitMass()`, `DiagonalMass()` or `LowRankMass(rank)`.
    - `thin`: transitions, and gradients, for each draw kept.
    - `temperature`: T of the target p(D | θ)^(1/T) p(θ)^(1/T).
    """

    num_chains: int = eqx.field(static=True, default=4)
    num_draws: int = eqx.field(static=True, default=500)
    num_warmup: int = eqx.field(static=True, default=2000)
    step_size: Float[Array, ""] = eqx.field(default=0.05, converter=number)
    target_acceptance: Float[Array, ""] = eqx.field(default=0.574, converter=number)
    mass: Mass = eqx.field(default_factory=DiagonalMass)
    thin: int = eqx.field(static=True, default=20)
    temperature: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        require_chain_settings(self)
        require_target(self)

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Draws:
        require_gradient(posterior, "MALA")
        one = Steps(jnp.asarray(1), jnp.zeros(()))
        transition = Hamiltonian(posterior.at_temperature(self.temperature), one)
        num_warmup = jnp.asarray(self.num_warmup)
        sampler = Adaptive(transition, self.mass, self.step_size, self.target_acceptance, num_warmup)
        schedule = Schedule(self.num_chains, self.num_draws, self.num_warmup, self.thin)
        return run_chains(key, self, sampler, schedule, around)
