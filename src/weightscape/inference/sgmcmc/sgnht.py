"""The stochastic gradient Nosé–Hoover thermostat: friction that finds out how noisy the gradients are.

    dθ = G^½ r dt,      dr = G^½ ∇ log p(D, θ) dt − χ r dt + √(2a) dW,      dχ = a² (r·r/d − 1) dt

with gradients from minibatches. Their noise heats the momentum r; the thermostat χ grows until r·r/d = 1 again. It
leaves p(θ | D) × N(r; 0, I) × N(χ; a + b, a²/d) invariant as the step size goes to 0, where b is the gradient noise's
share of the friction, if that noise is the same in all directions and everywhere. `nose_hoover` has the discretisation.

Reference: Ding et al. (2014), Bayesian sampling using stochastic gradient thermostats, algorithm 2. There a² is 1,
which knows no unit of time: where weights move in a thousandth of one, χ takes for ever to lose the heat of a bad
start. With a² it answers within 1/a, like the friction. Their steps are Euler's, with a bias of order h.
"""

import equinox as eqx
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, registered
from weightscape.core.checks import require_positive
from weightscape.core.numbers import number
from weightscape.draws import Draws
from weightscape.inference.chains import run_chains
from weightscape.inference.method import Circumstances, Method
from weightscape.inference.sgmcmc.course import course_of
from weightscape.inference.sgmcmc.minibatches import Minibatches
from weightscape.inference.sgmcmc.nose_hoover import NoseHoover
from weightscape.inference.sgmcmc.preconditioners import Identity, Preconditioner
from weightscape.inference.sgmcmc.schedules import StepSize, as_step_size
from weightscape.posterior import Posterior


@registered("inference.SGNHT")
class SGNHT(Method):
    """The stochastic gradient Nosé–Hoover thermostat.

    - `num_chains`, `num_draws`: how many chains, and draws kept of each.
    - `num_warmup`: transitions before the first draw.  `thin`: transitions for each draw kept.
    - `batch_size`: B, points drawn afresh with replacement at each step; None takes all.
    - `step_size`: h, a number or a schedule; below 2 over the root of the log density's largest curvature.
    - `friction`: a, that of the injected noise, where the thermostat begins.
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
    preconditioner: Preconditioner = eqx.field(default_factory=Identity)
    temperature: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        require_positive("`friction` of SGNHT", self.friction)
        course_of(self).check()

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Draws:
        course = course_of(self)
        sampler = NoseHoover(
            course.target(posterior),
            Minibatches(self.batch_size),
            self.step_size,
            self.preconditioner,
            self.friction,
        )
        return run_chains(key, self, sampler, course.schedule(), around)
