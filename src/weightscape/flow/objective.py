"""What a velocity field is trained on.

    loss = E_{t, x₀, x₁} w(t) ‖ f(t, x_t) − y_t ‖² / d

f is a model and y_t what it predicts: the rate u_t of the path, its target x₁, or the pull of the data. The minimum is
the conditional mean E[y_t | x_t], and the velocity field of the flow follows from it (`paths`, `pull`). Regressing on
the rates of single paths has the same gradient as regressing on the velocity field itself, which nobody knows
(Lipman et al. 2023, theorem 2).
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core import registered
from weightscape.core.checks import require_positive
from weightscape.core.numbers import number
from weightscape.core.types import PRNGKey, Scalar
from weightscape.flow.fields import Field, told
from weightscape.flow.paths import Path, point, rate, velocity_of_target
from weightscape.flow.pull import factors, pull_of_pair, velocity_of_pull

Model = Callable[[Scalar, Float[Array, " weight"]], Float[Array, " weight"]]


class Pair(NamedTuple):
    """A source point, a target point, and the gradient of the likelihood there, where it is needed."""

    source: Float[Array, "*pair weight"]
    target: Float[Array, "*pair weight"]
    gradient: Float[Array, "*pair weight"] | None = None


Averaged = Callable[[PRNGKey, Path, Scalar, Pair], Pair]
"""What may be done to a pair when its point has been taken: `swing`."""

_LAST = 1 - 1e-3
"""Where a target is predicted, velocities after this time are those at this time: there x_t says all about the target,
and the formula divides by what is left of the way."""


class Prediction(eqx.Module):
    """What the outputs of a model mean."""

    @abc.abstractmethod
    def wanted(self, path: Path, time: Scalar, source: Array, target: Array) -> Float[Array, "..."]:
        """y_t, what the model should have said."""

    def error(self, path: Path, time: Scalar, model: Model, x: Float[Array, " weight"], pair: Pair) -> Scalar:
        """w(t) ‖ f(t, x) − y_t ‖² / d of one pair, summed over all tries of a field that has several."""
        wanted = self.wanted(path, time, pair.source, pair.target)
        tries = model.tries(time, x) if isinstance(model, Field) else (model(time, x),)
        return sum((jnp.mean((each - wanted) ** 2) for each in tries), jnp.zeros((), x.dtype))

    def asked_at(self, time: Scalar) -> Scalar:
        """The time that stands for a time on the way, for the model and for `velocity`."""
        return time

    @abc.abstractmethod
    def velocity(self, path: Path, time: Scalar, x: Array, output: Array) -> Float[Array, "..."]:
        """The velocity at x, from what the model said."""


@registered("flow.OfVelocity")
class OfVelocity(Prediction):
    """The model says u_t."""

    def wanted(self, path: Path, time: Scalar, source: Array, target: Array) -> Float[Array, "..."]:
        return rate(path, time, source, target)

    def velocity(self, path: Path, time: Scalar, x: Array, output: Array) -> Float[Array, "..."]:
        return output


@registered("flow.OfTarget")
class OfTarget(Prediction):
    """The model says x₁."""

    def wanted(self, path: Path, time: Scalar, source: Array, target: Array) -> Float[Array, "..."]:
        return target

    def asked_at(self, time: Scalar) -> Scalar:
        return jnp.minimum(time, _LAST)

    def velocity(self, path: Path, time: Scalar, x: Array, output: Array) -> Float[Array, "..."]:
        return velocity_of_target(path, time, x, output)


@registered("flow.OfPull")
class OfPull(Prediction):
    """The model, a `PullField`, says G, and learns from the likelihood's gradient at the target. Needs a normal source
    that is independent of the targets; errors are weighted by the nats that they cost.
    """

    def wanted(self, path: Path, time: Scalar, source: Array, target: Array) -> Float[Array, "..."]:
        raise NotImplementedError("What a pull should be depends on the model's own curvature.")

    def error(self, path: Path, time: Scalar, model: Any, x: Float[Array, " weight"], pair: Pair) -> Scalar:
        assert pair.gradient is not None
        wanted = pull_of_pair(path, time, x, pair.target, pair.gradient, model.curvature(time))
        return factors(path, time).cost * jnp.mean((model(time, x) - wanted) ** 2)

    def velocity(self, path: Path, time: Scalar, x: Array, output: Array) -> Float[Array, "..."]:
        return velocity_of_pull(path, time, x, output)


class Times(eqx.Module):
    """A distribution of training times in (0, 1)."""

    @abc.abstractmethod
    def at(self, share: Scalar) -> Scalar:
        """The time that this share of all times comes before."""

    def sample(self, key: PRNGKey) -> Scalar:
        """One time."""
        return self.at(jax.random.uniform(key))


@registered("flow.UniformTimes")
class UniformTimes(Times):
    """All times alike."""

    def at(self, share: Scalar) -> Scalar:
        return share


@registered("flow.LogitNormalTimes")
class LogitNormalTimes(Times):
    """logit t ~ N(centre, spread²): more of the times in the middle (Esser et al. 2024).

    - `centre`: above 0 for later times.  `spread`: how wide.
    """

    centre: Scalar = eqx.field(converter=number, default=0.0)
    spread: Scalar = eqx.field(converter=number, default=1.0)

    def __check_init__(self) -> None:
        require_positive("`spread` of LogitNormalTimes", self.spread)

    def at(self, share: Scalar) -> Scalar:
        return jax.nn.sigmoid(self.centre + self.spread * jax.scipy.special.ndtri(share))


class Objective(eqx.Module):
    """The regression that trains a flow.

    - `path`, `prediction`, `times`: as above; w is 1 but for pulls, and `times` does the weighting.
    """

    path: Path
    prediction: Prediction = OfVelocity()
    times: Times = UniformTimes()

    def loss(
        self,
        key: PRNGKey,
        model: Model,
        sources: Float[Array, "pair weight"],
        targets: Float[Array, "pair weight"],
        gradients: Float[Array, "pair weight"] | None = None,
        *,
        contexts: Float[Array, "pair context"] | None = None,
        averaged: Averaged = lambda key, path, time, pair: pair,
    ) -> Scalar:
        """The mean over pairs (x₀, x₁), each at a time of its own; the times are spread evenly.

        - `gradients`: of the likelihood at the targets, where pulls are learned.  `averaged`: a `Swing`, or nothing.
        - `contexts`: what the model is told about the targets, where it is one of conditions.
        """
        count = len(sources)
        key_times, key_pairs = jax.random.split(key)
        shares = (jax.random.uniform(key_times, (), sources.dtype) + jnp.arange(count) / count) % 1

        def of(key: PRNGKey, share: Scalar, pair: Pair, context: Float[Array, " context"] | None) -> Scalar:
            time = self.times.at(share)
            x = point(self.path, time, pair.source, pair.target)
            averages = averaged(key, self.path, time, pair)
            return self.prediction.error(self.path, time, told(model, context), x, averages)

        keys, pairs = jax.random.split(key_pairs, count), Pair(sources, targets, gradients)
        return jnp.mean(jax.vmap(of)(keys, shares.astype(sources.dtype), pairs, contexts))

    def velocity(self, model: Model) -> Model:
        """The velocity field of a trained model."""
        at = lambda time, x: self.prediction.asked_at(jnp.asarray(time, x.dtype))
        return lambda time, x: self.prediction.velocity(self.path, at(time, x), x, model(at(time, x), x))
