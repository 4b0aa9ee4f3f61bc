"""Step sizes h_i, which may change from transition to transition, and where on their way draws are made.

    Constant          h_i = h
    PolynomialDecay   h_i = h (1 + i/b)^−γ
    Cyclical          h_i = h (1 + cos(π k/C)) / 2,      k = i mod C

with i the index of the transition, counted through warm-up and sampling. A cycle begins with large steps, which
explore, and ends with small ones, which sample: draws are made at its end. `warm_restarts` has cycles that grow.

References: Welling & Teh (2011), Bayesian learning via stochastic gradient Langevin dynamics; Zhang et al. (2020),
Cyclical stochastic gradient MCMC for Bayesian deep learning, eq. 1.
"""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from weightscape.core import Scalar, registered
from weightscape.core.checks import require, require_count, require_positive
from weightscape.core.numbers import number


class StepSize(eqx.Module):
    """A step size for every transition; its numbers are leaves, so changing one compiles nothing."""

    @abc.abstractmethod
    def size(self, index: Int[Array, ""]) -> Scalar:
        """h_i of transition i = `index`."""

    @abc.abstractmethod
    def noise(self, index: Int[Array, ""]) -> Scalar:
        """1 where transition `index` injects noise, 0 where it only climbs."""

    @abc.abstractmethod
    def gaps(self, thin: int) -> tuple[int, ...]:
        """Transitions before each draw, gone through in turn."""

    @abc.abstractmethod
    def check(self, method: str, num_warmup: int, thin: int) -> None:
        """Raise where draws would not fall where they should, given that warm-up takes `num_warmup` transitions."""


@registered("inference.Constant")
class Constant(StepSize):
    """h_i = h.  `step_size`: h."""

    step_size: Float[Array, ""] = eqx.field(converter=number)

    def __check_init__(self):
        require_positive("`step_size` of Constant", self.step_size)

    def size(self, index: Int[Array, ""]) -> Scalar:
        return self.step_size

    def noise(self, index: Int[Array, ""]) -> Scalar:
        return jnp.ones_like(self.step_size)

    def gaps(self, thin: int) -> tuple[int, ...]:
        return (thin,)

    def check(self, method: str, num_warmup: int, thin: int) -> None:
        """Any warm-up will do."""


@registered("inference.PolynomialDecay")
class PolynomialDecay(StepSize):
    """h_i = h (1 + i/b)^−γ, the a (b + i)^−γ of Welling & Teh with a = h b^γ.

    With 1/2 < γ ≤ 1 averages over draws, weighted by the draws' noted `step_size`, converge to the target's.

    - `first`: h, the size of the first step.  `offset`: b, about how many steps it stays so.  `power`: γ.
    """

    first: Float[Array, ""] = eqx.field(converter=number)
    offset: Float[Array, ""] = eqx.field(default=1000.0, converter=number)
    power: Float[Array, ""] = eqx.field(default=0.55, converter=number)

    def __check_init__(self):
        for name in ("first", "offset", "power"):
            require_positive(f"`{name}` of PolynomialDecay", getattr(self, name))
        remedy = "Pass a number up to 1; larger ones stop the chain before it has arrived."
        if not isinstance(self.power, Tracer):
            require(bool(self.power <= 1), "`power` of PolynomialDecay must be at most 1", float(self.power), remedy)

    def size(self, index: Int[Array, ""]) -> Scalar:
        return self.first * (1 + index / self.offset) ** -self.power

    def noise(self, index: Int[Array, ""]) -> Scalar:
        return jnp.ones_like(self.first)

    def gaps(self, thin: int) -> tuple[int, ...]:
        return (thin,)

    def check(self, method: str, num_warmup: int, thin: int) -> None:
        """Any warm-up will do."""


@registered("inference.Cyclical")
class Cyclical(StepSize):
    """h_i = h (1 + cos(π k/C)) / 2 with k = i mod C, and draws at the end of each cycle.

    The last of a cycle's draws follows its smallest step, the others come before it at a distance of the method's
    `thin`. Warm-up must be whole cycles.

    - `step_size`: h, the first of a cycle.  `cycle_length`: C.
    - `draws_per_cycle`: how many draws are made at the end of each.
    - `explore`: the part of each cycle that climbs without noise.
    """

    step_size: Float[Array, ""] = eqx.field(converter=number)
    cycle_length: Int[Array, ""] = eqx.field(converter=lambda value: jnp.asarray(np.asarray(value)))
    draws_per_cycle: int = eqx.field(static=True, default=1)
    explore: Float[Array, ""] = eqx.field(default=0.0, converter=number)

    def __check_init__(self):
        require_positive("`step_size` of Cyclical", self.step_size)
        check_cycles("Cyclical", {"cycle_length": self.cycle_length}, self.draws_per_cycle, self.explore)

    def size(self, index: Int[Array, ""]) -> Scalar:
        return cosine(self.step_size, index % self.cycle_length, self.cycle_length)

    def noise(self, index: Int[Array, ""]) -> Scalar:
        return is_past(self.explore, index % self.cycle_length, self.cycle_length)

    def gaps(self, thin: int) -> tuple[int, ...]:
        return gaps_at_end(int(self.cycle_length), self.draws_per_cycle, thin)

    def check(self, method: str, num_warmup: int, thin: int) -> None:
        length = int(self.cycle_length)
        check_gaps("Cyclical", self.gaps(thin), float(self.explore))
        asked = f"`num_warmup` of {method} must be whole cycles of {length} transitions"
        remedy = f"Pass {max(1, round(num_warmup / length)) * length}."
        require(num_warmup % length == 0, asked, num_warmup, remedy)


def as_step_size(value: Any) -> Any:
    """The converter of `step_size` fields: a number is a constant step size."""
    return value if isinstance(value, StepSize) else Constant(value)


def cosine(step_size: Scalar, place: Int[Array, ""], length: Int[Array, ""]) -> Scalar:
    """h (1 + cos(π k/C)) / 2 at `place` k of a cycle of `length` C."""
    return 0.5 * step_size * (1 + jnp.cos(jnp.pi * place / length))


def is_past(explore: Scalar, place: Int[Array, ""], length: Int[Array, ""]) -> Scalar:
    """1 at the places of a cycle behind its exploring part, else 0."""
    return (place >= explore * length).astype(explore.dtype)


def gaps_at_end(length: int, num_draws: int, thin: int) -> tuple[int, ...]:
    """The transitions before each of `num_draws` draws, `thin` apart, of which the last ends a cycle of `length`."""
    return (length - (num_draws - 1) * thin, *(thin,) * (num_draws - 1))


def check_cycles(name: str, lengths: dict[str, Array], draws_per_cycle: int, explore: Scalar) -> None:
    """Raise where the settings of a schedule with cycles make no sense."""
    for field, value in lengths.items():
        if not isinstance(value, Tracer):
            require_count(f"`{field}` of {name}", value.item())
    require_count(f"`draws_per_cycle` of {name}", draws_per_cycle)
    if not isinstance(explore, Tracer):
        asked = f"`explore` of {name} must be at least 0 and below 1"
        require(bool(0 <= explore < 1), asked, float(explore), "Pass a fraction such as 0.5.")


def check_gaps(name: str, gaps: tuple[int, ...], explore: float) -> None:
    """Raise where the first draw of a cycle would be made before its noise is on."""
    asked = f"The draws of a cycle of {name} must come after its exploring part"
    came = f"{len(gaps)} draws after {', '.join(str(sum(gaps[: i + 1])) for i in range(min(3, len(gaps))))}, …"
    remedy = "Lower `draws_per_cycle`, `thin` or `explore`, or make cycles longer."
    require(gaps[0] > explore * sum(gaps), asked, f"{came} of {sum(gaps)} transitions", remedy)
