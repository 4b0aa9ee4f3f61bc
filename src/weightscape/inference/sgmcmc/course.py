"""What the methods of this folder have in common: how long they run, with which steps, on which points."""

from typing import Any, NamedTuple

from jaxtyping import Array, Float

from weightscape.core.checks import require, require_count, require_positive, require_type
from weightscape.inference.chains import Schedule
from weightscape.inference.sgmcmc.preconditioners import Preconditioner
from weightscape.inference.sgmcmc.schedules import StepSize
from weightscape.inference.start import require_gradient
from weightscape.posterior import Posterior


class Course(NamedTuple):
    """Settings that every method here has; `method` is its name."""

    method: str
    num_chains: int
    num_draws: int
    num_warmup: int
    thin: int
    step_size: StepSize
    preconditioner: Preconditioner
    temperature: Float[Array, ""]
    batch_size: int | None

    def check(self) -> None:
        """Raise where a setting makes no sense."""
        for name in ("num_chains", "num_draws", "thin"):
            require_count(f"`{name}` of {self.method}", getattr(self, name))
        require_count(f"`num_warmup` of {self.method}", self.num_warmup, least=0)
        require_positive(f"`temperature` of {self.method}", self.temperature)
        if self.batch_size is not None:
            require_count(f"`batch_size` of {self.method}", self.batch_size)
        is_known = isinstance(self.preconditioner, Preconditioner)
        came, remedy = type(self.preconditioner).__name__, "Pass `Identity()` or `RMSprop()`."
        require_type(is_known, f"`preconditioner` of {self.method} must be a Preconditioner", came, remedy)
        self.step_size.check(self.method, self.num_warmup, self.thin)
        learns = self.num_warmup > 0 or not self.preconditioner.needs_warmup
        asked = f"`num_warmup` of {self.method} must be positive where {came} learns in it"
        require(learns, asked, self.num_warmup, "Warm up for a few hundred transitions, or set `keep_adapting`.")

    def schedule(self) -> Schedule:
        """What the runner is told."""
        return Schedule(self.num_chains, self.num_draws, self.num_warmup, self.step_size.gaps(self.thin))

    def target(self, posterior: Posterior) -> Posterior:
        """The tempered posterior, once it is clear that it has a gradient and enough points."""
        require_gradient(posterior, self.method)
        asked = f"`batch_size` of {self.method} must be at most the number of points, {posterior.num_points}"
        fits = self.batch_size is None or self.batch_size <= posterior.num_points
        require(fits, asked, self.batch_size, "Pass a smaller number, or None for all points.")
        return posterior.at_temperature(self.temperature)


def course_of(method: Any) -> Course:
    """The settings that a method of this folder has in common with the others."""
    names = [name for name in Course._fields if name not in ("method", "batch_size")]
    shared = {name: getattr(method, name) for name in names}
    return Course(method=type(method).__name__, batch_size=getattr(method, "batch_size", None), **shared)
