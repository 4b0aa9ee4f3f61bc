"""Carrying a point along a velocity field, with what happens to its density on the way.

    dx/dt = v(t, x),      d log q(x_t)/dt = −div v(t, x_t)

so log q₁(x₁) = log q₀(x₀) − ∫₀¹ div v dt, forwards and backwards. Solvers are those of diffrax. Products of matrices
have full precision here, on accelerators too: errors of log q are errors of weights.

A velocity is cheap, and an exact divergence costs as much as one for each weight. A fixed number of steps therefore
takes the integral by Gauss–Legendre quadrature, at a few nodes that the way passes through.
"""

import abc
import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from weightscape.core import register, registered
from weightscape.core.checks import require, require_count, require_positive, require_type
from weightscape.core.numbers import number
from weightscape.core.types import PRNGKey, Scalar
from weightscape.flow.divergence import Divergence
from weightscape.flow.paths import Path

Velocity = Callable[[Any, Float[Array, " weight"]], Float[Array, " weight"]]
Rate = Callable[[Any, Float[Array, " weight"]], Float[Array, " estimate"]]
Leg = Callable[[Float[Array, " weight"], Scalar, Scalar, Scalar], Float[Array, " weight"]]
"""From a point, an s, another s and a number of steps to the point there."""

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
    def draw(
        self,
        key: PRNGKey,
        path: Path,
        velocity: Velocity,
        start: Float[Array, " weight"],
        reach: Float[Array, " weight"] | float = math.inf,
    ) -> Float[Array, " weight"]:
        """The point at time 1 from one at time 0.

        - `key`: for solvers that have noise.  `path`: which says how much, and where velocities lead to.
        - `reach`: how far from zero that may be, for solvers that ask for it.
        """

    @abc.abstractmethod
    def solve(
        self, velocity: Velocity, x: Float[Array, " weight"], *, first: float | Scalar, last: float | Scalar
    ) -> Float[Array, " weight"]:
        """The point at time `last`, from that at time `first`."""

    @abc.abstractmethod
    def integrate(
        self, velocity: Velocity, rate: Rate, x: Float[Array, " weight"], *, first: float, last: float
    ) -> tuple[Float[Array, " weight"], Float[Array, " estimate"]]:
        """The same, and the integral of a rate over time along the way."""


@registered("flow.FixedSteps")
class FixedSteps(Solver):
    """A fixed number of steps, which shorten towards time 1: equal in s, where t = s + c s (1 − s).

    - `num_steps`: how many; a number, so that another one compiles nothing. Integrals take at least one step to a node.
    - `scheme`: the order of the error is that of the scheme: 1 for Euler, 2 for Heun, 3 for Bosh3, 5 for Tsit5.
    - `bend`: c, from 0 for equal steps to below 1. Flows to narrow posteriors contract late: `benchmarks/solver.py`.
    - `num_nodes`: of the quadrature of integrals, in s.
    """

    num_steps: Scalar = eqx.field(converter=number, default=24)
    scheme: diffrax.AbstractSolver = eqx.field(default_factory=diffrax.Bosh3)
    bend: Scalar = eqx.field(converter=number, default=0.7)
    num_nodes: int = eqx.field(static=True, default=10)

    def __check_init__(self) -> None:
        require_positive("`num_steps` of FixedSteps", self.num_steps)
        require_count("`num_nodes` of FixedSteps", self.num_nodes)
        require_bend("`bend` of FixedSteps", self.bend)

    def draw(
        self,
        key: PRNGKey,
        path: Path,
        velocity: Velocity,
        start: Float[Array, " weight"],
        reach: Float[Array, " weight"] | float = math.inf,
    ) -> Float[Array, " weight"]:
        return carry(self, velocity, start)

    def solve(
        self, velocity: Velocity, x: Float[Array, " weight"], *, first: float | Scalar, last: float | Scalar
    ) -> Float[Array, " weight"]:
        return self.solve_by(partial(self._leg, velocity), x, first=first, last=last)

    def integrate(
        self, velocity: Velocity, rate: Rate, x: Float[Array, " weight"], *, first: float, last: float
    ) -> tuple[Float[Array, " weight"], Float[Array, " estimate"]]:
        return self.integrate_by(partial(self._leg, velocity), rate, x, first=first, last=last)

    def solve_by(
        self, leg: Leg, x: Float[Array, " weight"], *, first: float | Scalar, last: float | Scalar
    ) -> Float[Array, " weight"]:
        """What `solve` does, for another way to go from one s to another."""
        return leg(x, self._place(first), self._place(last), self.num_steps)

    def integrate_by(
        self, leg: Leg, rate: Rate, x: Float[Array, " weight"], *, first: float, last: float
    ) -> tuple[Float[Array, " weight"], Float[Array, " estimate"]]:
        """What `integrate` does, for another way to go from one s to another."""
        start, end = self._place(first), self._place(last)
        nodes, shares = (jnp.asarray(each, x.dtype) for each in np.polynomial.legendre.leggauss(self.num_nodes))
        places = start + (end - start) * (nodes + 1) / 2
        steps = jnp.ceil(self.num_steps / (self.num_nodes + 1))

        def onwards(state: tuple[Array, Array], node: tuple[Array, Array]) -> tuple[tuple[Array, Array], Array]:
            (x, before), (place, share) = state, node
            x = leg(x, before, place, steps)
            return (x, place), share * (end - start) / 2 * self._pace(place) * rate(self._time(place), x)

        (x, before), parts = jax.lax.scan(onwards, (x, start.astype(x.dtype)), (places, shares))
        return leg(x, before, end, steps), jnp.sum(parts, axis=0)

    def by_place(self, velocity: Velocity) -> Velocity:
        """dx/ds at an s and an x."""
        return lambda s, x: self._pace(s).astype(x.dtype) * velocity(self._time(s), x)

    def _leg(self, velocity: Velocity, x: Array, first: Scalar, last: Scalar, num_steps: Scalar) -> Array:
        """From one s to another."""
        pace = self.by_place(velocity)
        term = diffrax.ODETerm(lambda s, x, _: pace(s, x))
        return _final(term, self.scheme, diffrax.ConstantStepSize(), x, first, last, (last - first) / num_steps)

    def _time(self, s: Any) -> Scalar:
        return bent(s, self.bend)

    def _pace(self, s: Any) -> Scalar:
        """dt/ds."""
        return 1 + self.bend - 2 * self.bend * s

    def _place(self, time: float | Scalar) -> Scalar:
        """The s of a time; the form that bears c = 0."""
        c = self.bend
        return 2 * time / (1 + c + jnp.sqrt((1 + c) ** 2 - 4 * c * time))


@registered("flow.Adaptive")
class Adaptive(Solver):
    """Steps as long as the error allows.

    - `relative`, `absolute`: the error allowed in each step, in every weight and in integrals.
    - `scheme`: one that knows its error, such as Tsit5 or Dopri8.
    """

    relative: Scalar = eqx.field(converter=number, default=1e-4)
    absolute: Scalar = eqx.field(converter=number, default=1e-4)
    scheme: diffrax.AbstractSolver = eqx.field(default_factory=diffrax.Tsit5)

    def __check_init__(self) -> None:
        require_positive("`relative` of Adaptive", self.relative)
        require_positive("`absolute` of Adaptive", self.absolute)

    def draw(
        self,
        key: PRNGKey,
        path: Path,
        velocity: Velocity,
        start: Float[Array, " weight"],
        reach: Float[Array, " weight"] | float = math.inf,
    ) -> Float[Array, " weight"]:
        return carry(self, velocity, start)

    def solve(
        self, velocity: Velocity, x: Float[Array, " weight"], *, first: float | Scalar, last: float | Scalar
    ) -> Float[Array, " weight"]:
        return self._solved(lambda time, x, _: velocity(time, x), x, first, last)

    def integrate(
        self, velocity: Velocity, rate: Rate, x: Float[Array, " weight"], *, first: float, last: float
    ) -> tuple[Float[Array, " weight"], Float[Array, " estimate"]]:
        zero = jnp.zeros_like(jax.eval_shape(rate, first, x))
        both = lambda time, state, _: (velocity(time, state[0]), rate(time, state[0]))
        return self._solved(both, (x, zero), first, last)

    def _solved(self, field: Callable[[Any, Any, Any], Any], start: Any, first: Any, last: Any) -> Any:
        controller = diffrax.PIDController(rtol=self.relative, atol=self.absolute)
        return _final(diffrax.ODETerm(field), self.scheme, controller, start, first, last, None)


def bent(s: Any, bend: Scalar) -> Any:
    """The time t = s + c s (1 − s), c the bend."""
    return s + bend * s * (1 - s)


def require_bend(name: str, bend: Scalar) -> None:
    """Raise unless a concrete bend makes a time of each s."""
    if not isinstance(bend, Tracer):
        require(0 <= float(bend) < 1, f"{name} must lie in [0, 1)", bend, "Pass 0 for equal steps.")


def require_solver(solver: Any) -> None:
    """Raise unless it is one."""
    asked, remedy = "`solver` must be a Solver", "Pass `FixedSteps(24)`, say."
    require_type(isinstance(solver, Solver), asked, type(solver).__name__, remedy)


class Transported(NamedTuple):
    """A point at the other end, and log q₁(x₁) − log q₀(x₀): one number for each estimate of the divergence."""

    x: Float[Array, " weight"]
    log_change: Float[Array, " estimate"]


def carry(
    solver: Solver, velocity: Velocity, x: Float[Array, " weight"], *, first: float = 0.0, last: float = 1.0
) -> Float[Array, " weight"]:
    """The point at time `last` of the path through x at time `first`."""
    return solver.solve(velocity, x, first=first, last=last)


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
    rate = lambda time, x: divergence.of(lambda x: velocity(time, x), x, probes)
    x, total = solver.integrate(velocity, rate, x, first=first, last=last)
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
