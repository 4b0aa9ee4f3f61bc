"""What a velocity field is trained on.

    loss = E_{t, x₀, x₁} w(t) ‖ f(t, x_t) − y_t ‖² / d

f is a model and y_t what it predicts: the rate u_t of the path, or its target x₁. The minimum is the conditional mean
E[y_t | x_t], and the velocity field of the flow follows from it (`paths`). Regressing on the rates of single paths has
the same gradient as regressing on the velocity field itself, which nobody knows (Lipman et al. 2023, theorem 2).
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.checks import require_positive
from weightscape.core.numbers import number
from weightscape.core.types import PRNGKey, Scalar
from weightscape.flow.paths import Path, point, rate, velocity_of_target

Model = Callable[[Scalar, Float[Array, " weight"]], Float[Array, " weight"]]

_LAST = 1 - 1e-3
"""Where a target is predicted, velocities after this time are those at this time: there x_t says all about the target,
and the formula divides by what is left of the way."""


class Prediction(eqx.Module):
    """What the outputs of a model mean."""

    @abc.abstractmethod
    def wanted(self, path: Path, time: Scalar, source: Array, target: Array) -> Float[Array, "..."]:
        """y_t, what the model should have said."""

    @abc.abstractmethod
    def velocity(self, path: Path, time: Scalar, x: Array, output: Array) -> Float[Array, "..."]:
        """The velocity at x, from what the model said."""


class OfVelocity(Prediction):
    """The model says u_t."""

    def wanted(self, path: Path, time: Scalar, source: Array, target: Array) -> Float[Array, "..."]:
        return rate(path, time, source, target)

    def velocity(self, path: Path, time: Scalar, x: Array, output: Array) -> Float[Array, "..."]:
        return output


class OfTarget(Prediction):
    """The model says x₁."""

    def wanted(self, path: Path, time: Scalar, source: Array, target: Array) -> Float[Array, "..."]:
        return target

    def velocity(self, path: Path, time: Scalar, x: Array, output: Array) -> Float[Array, "..."]:
        return velocity_of_target(path, jnp.minimum(time, _LAST), x, output)


class Times(eqx.Module):
    """A distribution of training times in (0, 1)."""

    @abc.abstractmethod
    def sample(self, key: PRNGKey) -> Scalar:
        """One time."""


class UniformTimes(Times):
    """All times alike."""

    def sample(self, key: PRNGKey) -> Scalar:
        return jax.random.uniform(key)


class LogitNormalTimes(Times):
    """logit t ~ N(centre, spread²): more of the times in the middle (Esser et al. 2024).

    - `centre`: above 0 for later times.  `spread`: how wide.
    """

    centre: Scalar = eqx.field(converter=number, default=0.0)
    spread: Scalar = eqx.field(converter=number, default=1.0)

    def __check_init__(self) -> None:
        require_positive("`spread` of LogitNormalTimes", self.spread)

    def sample(self, key: PRNGKey) -> Scalar:
        return jax.nn.sigmoid(self.centre + self.spread * jax.random.normal(key))


class Objective(eqx.Module):
    """The regression that trains a flow.

    - `path`, `prediction`, `times`: as above; w = 1, so that `times` does the weighting.
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
    ) -> Scalar:
        """The mean over pairs (x₀, x₁), each at a time of its own."""
        keys = jax.random.split(key, len(sources))
        return jnp.mean(jax.vmap(self._of_pair, in_axes=(0, None, 0, 0))(keys, model, sources, targets))

    def velocity(self, model: Model) -> Model:
        """The velocity field of a trained model."""
        return lambda time, x: self.prediction.velocity(self.path, time, x, model(time, x))

    def _of_pair(self, key: PRNGKey, model: Model, source: Array, target: Array) -> Scalar:
        time = self.times.sample(key).astype(source.dtype)
        x = point(self.path, time, source, target)
        return jnp.mean((model(time, x) - self.prediction.wanted(self.path, time, source, target)) ** 2)
