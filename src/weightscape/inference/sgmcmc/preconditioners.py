"""Preconditioners: a diagonal matrix G that gives every weight its own step size.

    θ ← θ + (h/2) (G ∇ log p + Γ) + √h G^½ ξ,      Γ_i = Σ_j ∂G_ij/∂θ_j

Γ is there because G may depend on θ; without it the chain has another target. A G that is learned in warm-up and then
fixed does not depend on θ, so Γ = 0 and nothing is missing: that is what happens here unless `keep_adapting` is set.

Reference: Li et al. (2016), Preconditioned stochastic gradient Langevin dynamics for deep neural networks, eqs. 4 to 7.
"""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float

from weightscape.core import Tree, registered, tree
from weightscape.core.checks import require_fraction, require_positive
from weightscape.core.numbers import number
from weightscape.posterior import Position


class Preconditioner(eqx.Module):
    """A diagonal G, with a state that it learns from gradients."""

    @property
    @abc.abstractmethod
    def is_fixed(self) -> bool:
        """Whether G stays the same while draws are made."""

    @property
    @abc.abstractmethod
    def needs_warmup(self) -> bool:
        """Whether G must be learned before draws are made."""

    @abc.abstractmethod
    def init(self, position: Position) -> Any:
        """What is known before the first gradient."""

    @abc.abstractmethod
    def learn(self, state: Any, mean_gradient: Position) -> Any:
        """What is known after another gradient, which is that of log p divided by the number of points."""

    @abc.abstractmethod
    def settle(self, state: Any) -> Any:
        """What is known at the end of warm-up."""

    @abc.abstractmethod
    def apply(self, state: Any, vector: Tree) -> Tree:
        """G · vector."""

    @abc.abstractmethod
    def apply_root(self, state: Any, vector: Tree) -> Tree:
        """G^½ · vector."""


@registered("inference.Identity")
class Identity(Preconditioner):
    """G = I: one step size for all weights."""

    @property
    def is_fixed(self) -> bool:
        return True

    @property
    def needs_warmup(self) -> bool:
        return False

    def init(self, position: Position) -> tuple[()]:
        return ()

    def learn(self, state: tuple[()], mean_gradient: Position) -> tuple[()]:
        return state

    def settle(self, state: tuple[()]) -> tuple[()]:
        return state

    def apply(self, state: tuple[()], vector: Tree) -> Tree:
        return vector

    def apply_root(self, state: tuple[()], vector: Tree) -> Tree:
        return vector


class Squares(NamedTuple):
    """The sum of squared gradients with weights (1 − β) β^k, and the sum of these weights: 1 − β^t after t."""

    total: Position
    weight: Float[Array, ""]


@registered("inference.RMSprop")
class RMSprop(Preconditioner):
    """G = 1 / (ε + √v) with v ← β v + (1 − β) g², where g is the gradient of log p divided by the number of points.

    With `keep_adapting` v follows the chain while draws are made, as in Li et al., and Γ is left out, as they do. The
    draws then have a bias that a smaller step size does not remove; a β nearer to 1 lowers it.

    - `decay`: β.  `floor`: ε, which bounds G by 1/ε.  `keep_adapting`: whether v goes on changing after warm-up.

    Li et al. take g from the likelihood alone; here the prior is in it. Their v starts at 0 and makes the first steps
    large where gradients are small, as at a MAP point. Here it starts at 1, so that G starts near the identity, and
    where v is to be frozen the end of warm-up takes that 1 out of it again. Their β is 0.99; a v that is frozen should
    remember more than a hundred correlated gradients.
    """

    decay: Float[Array, ""] = eqx.field(default=0.999, converter=number)
    floor: Float[Array, ""] = eqx.field(default=1e-5, converter=number)
    keep_adapting: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        require_positive("`floor` of RMSprop", self.floor)
        if not isinstance(self.decay, Tracer):
            require_fraction("`decay` of RMSprop", float(self.decay))

    @property
    def is_fixed(self) -> bool:
        return not self.keep_adapting

    @property
    def needs_warmup(self) -> bool:
        return not self.keep_adapting

    def init(self, position: Position) -> Squares:
        return Squares(jax.tree.map(jnp.zeros_like, position), jnp.zeros_like(self.decay))

    def learn(self, state: Squares, mean_gradient: Position) -> Squares:
        follow = lambda total, g: self.decay * total + (1 - self.decay) * g**2
        return Squares(jax.tree.map(follow, state.total, mean_gradient), follow(state.weight, 1.0))

    def settle(self, state: Squares) -> Squares:
        if self.keep_adapting:
            return state
        return Squares(tree.scale(1 / state.weight, state.total), jnp.ones_like(state.weight))

    def apply(self, state: Squares, vector: Tree) -> Tree:
        return jax.tree.map(lambda leaf, total: leaf / self._divisor(total, state), vector, state.total)

    def apply_root(self, state: Squares, vector: Tree) -> Tree:
        return jax.tree.map(lambda leaf, total: leaf / jnp.sqrt(self._divisor(total, state)), vector, state.total)

    def _divisor(self, total: Array, state: Squares) -> Array:
        """ε + √v, where the weight that gradients do not have yet is on v = 1."""
        # The bracket keeps a small v: after warm-up it holds 0, and v + 1 − 1 would round v away.
        return self.floor + jnp.sqrt(total + (1 - state.weight))
