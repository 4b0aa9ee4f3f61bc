"""Microcanonical Langevin Monte Carlo: steps of fixed length whose direction bends with the gradient.

The velocity u has length one. Between small random turns, which forget its direction over a distance L, it follows

    dz = u dt,    du = (I − u uᵀ) ∇log p(z) / (d − 1) dt,

under which p(z) is invariant for d ≥ 2 weights. Steps of size ε keep that only nearly, and nothing is rejected: draws
have a bias, which is of order ε² in expectations and shrinks as ε does. What warm-up aims at is its measure, the
variance of the energy error for each dimension; at 5 · 10⁻⁴ the variances of a regression with 40 weights come out
0.8 % too small, and 0.6 % at 10⁻⁴ (`benchmarks/mclmc_bias.py`).
In return many weights cost no acceptance: ε need not shrink as d grows.

Reference: Robnik, De Luca, Silverstein & Seljak (2023), Microcanonical Hamiltonian Monte Carlo.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, registered, tree
from weightscape.core.checks import require, require_positive
from weightscape.core.numbers import number
from weightscape.draws import Draws
from weightscape.inference.chains import Schedule, run_chains
from weightscape.inference.mcmc.isokinetic import Isokinetic
from weightscape.inference.mcmc.mass import DiagonalMass, Mass
from weightscape.inference.mcmc.settings import require_chain_settings
from weightscape.inference.method import Circumstances, Method
from weightscape.inference.start import require_gradient
from weightscape.posterior import Posterior


@registered("inference.MCLMC")
class MCLMC(Method):
    """Microcanonical Langevin Monte Carlo with warm-up; unadjusted, so biased by its step size.

    - `num_chains`, `num_draws`: how many chains, and draws kept of each.
    - `num_warmup`: steps of warm-up; 0 keeps `step_size` as it is and takes L = √d.
    - `energy_variance`: the wanted Var(ΔE) / d, which sets ε: smaller is less biased, and slower.
    - `step_size`: ε, the first guess where warm-up adapts it.
    - `mass`: what warm-up learns of the scales of the weights: `UnitMass()`, `DiagonalMass()` or `LowRankMass(rank)`.
    - `thin`: steps for each draw kept; a step takes two gradients.
    - `temperature`: T of the target p(D | θ)^(1/T) p(θ)^(1/T).
    """

    num_chains: int = eqx.field(static=True, default=4)
    num_draws: int = eqx.field(static=True, default=500)
    num_warmup: int = eqx.field(static=True, default=3000)
    energy_variance: Float[Array, ""] = eqx.field(default=5e-4, converter=number)
    step_size: Float[Array, ""] = eqx.field(default=0.05, converter=number)
    mass: Mass = eqx.field(default_factory=DiagonalMass)
    thin: int = eqx.field(static=True, default=16)
    temperature: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        require_chain_settings(self)
        require_positive("`energy_variance` of MCLMC", self.energy_variance)

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Draws:
        require_gradient(posterior, "MCLMC")
        num_weights = tree.size(jax.eval_shape(posterior.start_position, key))
        require(num_weights > 1, "MCLMC must have at least two unknowns to turn in", num_weights, "Use HMC.")
        target = posterior.at_temperature(self.temperature)
        num_warmup = jnp.asarray(self.num_warmup)
        sampler = Isokinetic(target, self.mass, self.step_size, self.energy_variance, num_warmup)
        schedule = Schedule(self.num_chains, self.num_draws, self.num_warmup, self.thin)
        return run_chains(key, self, sampler, schedule, around)
