"""Stochastic gradient Langevin dynamics: the unadjusted Langevin algorithm with gradients from minibatches.

    θ ← θ + (h/2) ĝ(θ) + √h ξ,      ξ ~ N(0, I),      ĝ = (N/B) Σ_{i ∈ batch} ∇ log p(y_i | f(x_i; θ)) + ∇ log p(θ)

ĝ estimates the gradient of the sum over all points, so the noise is that of the full posterior: it is set by h alone
(and by the temperature, through the target). The minibatch adds noise of its own, of order h² at each step, which is
not subtracted: draws are too wide by an amount of order h N²/B.

Reference: Welling & Teh (2011), Bayesian learning via stochastic gradient Langevin dynamics, eq. 4.
"""

import equinox as eqx
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, registered
from weightscape.core.numbers import number
from weightscape.draws import Draws
from weightscape.inference.chains import run_chains
from weightscape.inference.method import Circumstances, Method
from weightscape.inference.sgmcmc.course import course_of
from weightscape.inference.sgmcmc.langevin import Langevin
from weightscape.inference.sgmcmc.minibatches import Minibatches
from weightscape.inference.sgmcmc.preconditioners import Identity, Preconditioner
from weightscape.inference.sgmcmc.schedules import StepSize, as_step_size
from weightscape.posterior import Posterior


@registered("inference.SGLD")
class SGLD(Method):
    """Stochastic gradient Langevin dynamics.

    - `num_chains`, `num_draws`: how many chains, and draws kept of each.
    - `num_warmup`: transitions before the first draw.  `thin`: transitions for each draw kept.
    - `batch_size`: B, points drawn afresh with replacement at each step; None takes all.
    - `step_size`: h, a number or a schedule: `PolynomialDecay` as in the paper, `Cyclical` for several modes.
    - `preconditioner`: G; `RMSprop()` makes this pSGLD.
    - `temperature`: T of the target p(D | θ)^(1/T) p(θ)^(1/T).
    """

    num_chains: int = eqx.field(static=True, default=4)
    num_draws: int = eqx.field(static=True, default=1000)
    num_warmup: int = eqx.field(static=True, default=5000)
    thin: int = eqx.field(static=True, default=10)
    batch_size: int | None = eqx.field(static=True, default=None)
    step_size: StepSize = eqx.field(default=1e-5, converter=as_step_size)
    preconditioner: Preconditioner = eqx.field(default_factory=Identity)
    temperature: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        course_of(self).check()

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Draws:
        course = course_of(self)
        sampler = Langevin(
            course.target(posterior),
            Minibatches(self.batch_size),
            self.step_size,
            self.preconditioner,
        )
        return run_chains(key, self, sampler, course.schedule(), around)
