"""What SGHMC knows of the variance V of a minibatch gradient, by which it lowers the noise that it injects.

A step adds κ² G V of its own accord (κ is the weight of the gradient in the step), so κ² G V̂ less has to be injected.
V̂ is one variance for each weight, and constant while draws are made: V depends on θ, and what V̂ leaves out of it, with
its correlations, stays a bias of order h.

Reference: Chen, Fox & Guestrin (2014), Stochastic gradient Hamiltonian Monte Carlo, section 3.3; V̂ is 2 B̂/h there.
"""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, registered, tree
from weightscape.core.checks import require, require_fraction
from weightscape.core.numbers import number
from weightscape.inference.sgmcmc.minibatches import Minibatches
from weightscape.posterior import Position, Posterior


class GradientNoise(eqx.Module):
    """An estimate V̂, with a state that is learned in warm-up."""

    @property
    @abc.abstractmethod
    def is_learned(self) -> bool:
        """Whether V̂ comes from the halves of the batches of warm-up."""

    @abc.abstractmethod
    def init(self, position: Position) -> Any:
        """What is known before the first gradient."""

    @abc.abstractmethod
    def gradient(self, key: PRNGKey, batches: Minibatches, posterior: Posterior, position: Position) -> "Noisy":
        """A gradient estimate for a step of warm-up."""

    @abc.abstractmethod
    def learn(self, state: Any, square: Any) -> Any:
        """What is known after a step of warm-up whose gradient had the squared error `square`."""

    @abc.abstractmethod
    def variance(self, state: Any, position: Position) -> Position:
        """V̂ of every weight."""


class Noisy(NamedTuple):
    """A gradient estimate, and an unbiased estimate of its variance where there is one, else ()."""

    gradient: Position
    square: Any


@registered("inference.KnownNoise")
class KnownNoise(GradientNoise):
    """V̂ = v for every weight.

    v = 0 neglects the minibatches' noise: right for full batches, and where friction dwarfs it.

    - `gradient_variance`: v, that of an entry of the gradient of the sum over all points.
    """

    gradient_variance: Float[Array, ""] = eqx.field(default=0.0, converter=number)

    def __check_init__(self):
        if not isinstance(self.gradient_variance, Tracer):
            v = float(self.gradient_variance)
            asked = "`gradient_variance` of KnownNoise must be finite and not negative"
            require(0 <= v < float("inf"), asked, v, "Pass a variance, or `HalfBatchNoise()` to estimate it.")

    @property
    def is_learned(self) -> bool:
        return False

    def init(self, position: Position) -> tuple[()]:
        return ()

    def gradient(self, key: PRNGKey, batches: Minibatches, posterior: Posterior, position: Position) -> Noisy:
        return Noisy(batches.gradient(key, posterior, position), ())

    def learn(self, state: tuple[()], square: tuple[()]) -> tuple[()]:
        return state

    def variance(self, state: tuple[()], position: Position) -> Position:
        return jax.tree.map(lambda leaf: jnp.full_like(leaf, self.gradient_variance), position)


class Spread(NamedTuple):
    """The mean of squared errors, and the weight that it is a mean over: 1 − β^t after t steps."""

    mean: Position
    weight: Float[Array, ""]


@registered("inference.HalfBatchNoise")
class HalfBatchNoise(GradientNoise):
    """V̂ from the two halves of each batch in warm-up: the mean of ((ĝ₁ − ĝ₂)/2)², where ĝ = (ĝ₁ + ĝ₂)/2.

    For points drawn with replacement its expectation is the variance of ĝ. It costs nothing beyond ĝ itself.

    - `decay`: β of the moving average, over about 1/(1 − β) steps.
    """

    decay: Float[Array, ""] = eqx.field(default=0.999, converter=number)

    def __check_init__(self):
        if not isinstance(self.decay, Tracer):
            require_fraction("`decay` of HalfBatchNoise", float(self.decay))

    @property
    def is_learned(self) -> bool:
        return True

    def init(self, position: Position) -> Spread:
        return Spread(jax.tree.map(jnp.zeros_like, position), jnp.zeros_like(self.decay))

    def gradient(self, key: PRNGKey, batches: Minibatches, posterior: Posterior, position: Position) -> Noisy:
        first, second = batches.halves(key, posterior, position)
        square = jax.tree.map(lambda g1, g2: ((g1 - g2) / 2) ** 2, first, second)
        return Noisy(tree.scale(0.5, tree.add(first, second)), square)

    def learn(self, state: Spread, square: Position) -> Spread:
        follow = lambda mean, new: self.decay * mean + (1 - self.decay) * new
        return Spread(jax.tree.map(follow, state.mean, square), follow(state.weight, 1.0))

    def variance(self, state: Spread, position: Position) -> Position:
        return tree.scale(1 / state.weight, state.mean)


def as_gradient_noise(value: Any) -> Any:
    """The converter of `gradient_noise` fields: a number is a known variance."""
    return value if isinstance(value, GradientNoise) else KnownNoise(value)
