"""Carrying a point along a velocity field, with what happens to its density on the way.

    dx/dt = v(t, x),      d log q(x_t)/dt = −div v(t, x_t)

so log q₁(x₁) = log q₀(x₀) − ∫₀¹ div v dt, forwards and backwards. Solvers are those of diffrax. Products of matrices
have full precision here, on accelerators too: errors of log q are errors of weights.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core import register, registered
from weightscape.core.checks import require_positive
from weightscape.core.numbers import number
from weightscape.core.types import PRNGKey, Scalar
from weightscape.flow.divergence import Divergence

Velocity = Callable[[Any, Float[Array, " weight"]], Float[Array, " weight"]]

for _scheme in (
    diffrax.Euler,
    diffrax.Midpoint,
    diffrax.Heun,
    diffrax.Bosh3,
    diffrax.Tsit5,
    diffrax.Dopri5,
    diffrax.Dopri8,
):
    register(f"diffrax.{_scheme.__name__}", _scheme)

_MOST_STEPS = 2**14
"""More than this the solver refuses: the field is then too rough to be followed."""


class Solver(eqx.Module):
    """How the equation is solved."""

    @abc.abstractmethod
    def solve(self, term: diffrax.ODETerm, start: Any, *, first: float | Scalar, last: float | Scalar) -> Any:
        """The state at time `last`, from that at time `first`."""


@registered("flow.FixedSteps")
class FixedSteps(Solver):
    """Equal steps.

    - `num_steps`: how many; a number, so that another one compiles nothing.
    - `scheme`: the order of the error is that of the scheme: 1 for Euler, 2 for Heun, 5 for Tsit5.
    """

    num_steps: Scalar = eqx.field(converter=number, default=40)
    scheme: diffrax.AbstractSolver = eqx.field(default_factory=diffrax.Heun)

    def __check_init__(self) -> None:
        require_positive("`num_steps` of FixedSteps", self.num_steps)

    def solve(self, term: diffrax.ODETerm, start: Any, *, first: float | Scalar, last: float | Scalar) -> Any:
        step = (last - first) / self.num_steps
        return _final(term, self.scheme, diffrax.ConstantStepSize(), start, first, last, step)


@registered("flow.Adaptive")
class Adaptive(Solver):
    """Steps as long as the error allows.

    - `relative`, `absolute`: the error allowed in each step, in every weight and in the log density.
    - `scheme`: one that knows its error, such as Tsit5 or Dopri8.
    """

    relative: Scalar = eqx.field(converter=number, default=1e-4)
    absolute: Scalar = eqx.field(converter=number, default=1e-4)
    scheme: diffrax.AbstractSolver = eqx.field(default_factory=diffrax.Tsit5)

    def __check_init__(self) -> None:
        require_positive("`relative` of Adaptive", self.relative)
        require_positive("`absolute` of Adaptive", self.absolute)

    def solve(self, term: diffrax.ODETerm, start: Any, *, first: float | Scalar, last: float | Scalar) -> Any:
        controller = diffrax.PIDController(rtol=self.relative, atol=self.absolute)
        return _final(term, self.scheme, controller, start, first, last, None)


class Transported(NamedTuple):
    """A point at the other end, and log q₁(x₁) − log q₀(x₀): one number for each estimate of the divergence."""

    x: Float[Array, " weight"]
    log_change: Float[Array, " estimate"]


def carry(
    solver: Solver, velocity: Velocity, x: Float[Array, " weight"], *, first: float = 0.0, last: float = 1.0
) -> Float[Array, " weight"]:
    """The point at time `last` of the path through x at time `first`."""
    term = diffrax.ODETerm(lambda time, x, _: velocity(time, x))
    return solver.solve(term, x, first=first, last=last)


def carry_with_path(
    solver: Solver, velocity: Velocity, x: Float[Array, " weight"], times: Float[Array, " time"]
) -> Float[Array, "time weight"]:
    """The points at several times, of the path through x at time 0."""
    term = diffrax.ODETerm(lambda time, x, _: velocity(time, x))

    def onwards(x: Array, interval: tuple[Array, Array]) -> tuple[Array, Array]:
        first, last = interval
        moved = jnp.where(last > first, solver.solve(term, x, first=first, last=jnp.maximum(last, first + 1e-6)), x)
        return moved, moved

    starts = jnp.concatenate([jnp.zeros((1,), times.dtype), times[:-1]])
    return jax.lax.scan(onwards, x, (starts, times))[1]


def carry_with_density(
    key: PRNGKey,
    solver: Solver,
    velocity: Velocity,
    divergence: Divergence,
    x: Float[Array, " weight"],
    *,
    first: float = 0.0,
    last: float = 1.0,
) -> Transported:
    """The same, with the change of the log density from time 0 to time 1 along the way, whichever way it is gone.

    - `key`: for the probes of the divergence; the exact one uses none.
    """
    probes = divergence.probes(key, x)
    field = lambda time: lambda x: velocity(time, x)
    term = diffrax.ODETerm(lambda time, state, _: divergence.of(field(time), state[0], probes))
    zero = jnp.zeros((max(len(probes), 1),), x.dtype)
    x, total = solver.solve(term, (x, zero), first=first, last=last)
    return Transported(x, -total if last > first else total)


def _final(
    term: diffrax.ODETerm,
    scheme: diffrax.AbstractSolver,
    controller: diffrax.AbstractStepSizeController,
    start: Any,
    first: float | Scalar,
    last: float | Scalar,
    step: Scalar | None,
) -> Any:
    with jax.default_matmul_precision("highest"):
        solution = diffrax.diffeqsolve(
            term,
            scheme,
            first,
            last,
            step,
            start,
            stepsize_controller=controller,
            saveat=diffrax.SaveAt(t1=True),
            max_steps=_MOST_STEPS,
        )
    return jax.tree.map(lambda saved: saved[0], solution.ys)
