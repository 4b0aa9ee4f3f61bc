"""Stochastic gradient Hamiltonian Monte Carlo: momentum that persists, friction, and noise that balances it.

    dθ = G^½ r dt,      dr = G^½ ∇ log p(D, θ) dt − c r dt + √(2c) dW

with gradients from minibatches. It leaves p(θ | D) × N(r; 0, I) invariant as the step size goes to 0; `underdamped` has
the discretisation. Friction c forgets momentum after 1/c of time, 1/(c h) steps: a small one travels far, a large one
makes this SGLD with steps of h².

Reference: Chen, Fox & Guestrin (2014), Stochastic gradient Hamiltonian Monte Carlo, eqs. 9 to 15. Their Euler steps,
with 1 − c h for e^(−c h), have a bias of order h with exact gradients too; the splitting used here has h². Their
learning rate is h² and their momentum decay α is c h.
"""

import equinox as eqx
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, registered
from weightscape.core.checks import require, require_positive
from weightscape.core.numbers import number
from weightscape.draws import Draws
from weightscape.inference.chains import run_chains
from weightscape.inference.method import Circumstances, Method
from weightscape.inference.sgmcmc.course import course_of
from weightscape.inference.sgmcmc.gradient_noise import GradientNoise, as_gradient_noise
from weightscape.inference.sgmcmc.minibatches import Minibatches
from weightscape.inference.sgmcmc.preconditioners import Identity, Preconditioner
from weightscape.inference.sgmcmc.schedules import StepSize, as_step_size
from weightscape.inference.sgmcmc.underdamped import Underdamped
from weightscape.posterior import Posterior


@registered("inference.SGHMC")
class SGHMC(Method):
    """Stochastic gradient Hamiltonian Monte Carlo.

    - `num_chains`, `num_draws`: how many chains, and draws kept of each.
    - `num_warmup`: transitions before the first draw.  `thin`: transitions for each draw kept.
    - `batch_size`: B, points drawn afresh with replacement at each step; None takes all.
    - `step_size`: h, a number or a schedule; below 2 over the root of the log density's largest curvature.
    - `friction`: c.
    - `gradient_noise`: V̂, the variance of each entry of ĝ: a number, of which 0 neglects it, or `HalfBatchNoise()`,
      which estimates it in warm-up.
    - `preconditioner`: G, the inverse of the mass.
    - `temperature`: T of the target p(D | θ)^(1/T) p(θ)^(1/T).
    """

    num_chains: int = eqx.field(static=True, default=4)
    num_draws: int = eqx.field(static=True, default=1000)
    num_warmup: int = eqx.field(static=True, default=5000)
    thin: int = eqx.field(static=True, default=10)
    batch_size: int | None = eqx.field(static=True, default=None)
    step_size: StepSize = eqx.field(default=1e-3, converter=as_step_size)
    friction: Float[Array, ""] = eqx.field(default=10.0, converter=number)
    gradient_noise: GradientNoise = eqx.field(default=0.0, converter=as_gradient_noise)
    preconditioner: Preconditioner = eqx.field(default_factory=Identity)
    temperature: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        require_positive("`friction` of SGHMC", self.friction)
        course_of(self).check()
        has_halves = self.batch_size is not None and self.batch_size % 2 == 0 and self.num_warmup > 0
        asked = "HalfBatchNoise of SGHMC must have an even `batch_size` and a warm-up to learn in"
        came = f"`batch_size` {self.batch_size} and `num_warmup` {self.num_warmup}"
        remedy = "Pass both, or a number."
        require(has_halves or not self.gradient_noise.is_learned, asked, came, remedy)

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Draws:
        course = course_of(self)
        sampler = Underdamped(
            course.target(posterior),
            Minibatches(self.batch_size),
            self.step_size,
            self.preconditioner,
            self.gradient_noise,
            self.friction,
        )
        return run_chains(key, self, sampler, course.schedule(), around)
