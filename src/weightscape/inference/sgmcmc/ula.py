"""The unadjusted Langevin algorithm: gradient steps on all points, with noise, and no rejection.

    θ ← θ + (h/2) ∇ log p(D, θ) + √h ξ,      ξ ~ N(0, I)

Its stationary distribution is p(θ | D) up to a bias of order h; MALA removes it by rejection, smaller steps reduce it.

Reference: Roberts & Tweedie (1996), Exponential convergence of Langevin distributions and their discrete
approximations, section 1.4. There h is called σ².
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


@registered("inference.ULA")
class ULA(Method):
    """The unadjusted Langevin algorithm.

    - `num_chains`, `num_draws`: how many chains, and draws kept of each.
    - `num_warmup`: transitions before the first draw.  `thin`: transitions for each draw kept.
    - `step_size`: h, a number or a schedule such as `Cyclical`; below 4 over the log density's largest curvature.
    - `preconditioner`: G, such as `RMSprop()`, where weights differ much in scale.
    - `temperature`: T of the target p(D | θ)^(1/T) p(θ)^(1/T).
    """

    num_chains: int = eqx.field(static=True, default=4)
    num_draws: int = eqx.field(static=True, default=1000)
    num_warmup: int = eqx.field(static=True, default=5000)
    thin: int = eqx.field(static=True, default=10)
    step_size: StepSize = eqx.field(default=1e-5, converter=as_step_size)
    preconditioner: Preconditioner = eqx.field(default_factory=Identity)
    temperature: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        course_of(self).check()

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Draws:
        course = course_of(self)
        sampler = Langevin(
            course.target(posterior),
            Minibatches(None),
            self.step_size,
            self.preconditioner,
        )
        return run_chains(key, self, sampler, course.schedule(), around)
