"""The mass of Hamiltonian Monte Carlo, and how warm-up learns it.

The best M⁻¹ is the covariance of the posterior: then all directions look alike, and ε need not fit the narrowest.
Warm-up sees positions and gradients in windows, and at the end of each sets M⁻¹ from what it saw there.

Reference: Neal (2011), MCMC using Hamiltonian dynamics, section 4.1; Stan reference manual, HMC adaptation.
"""

import abc
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from weightscape.core import registered
from weightscape.core.checks import require, require_count
from weightscape.inference.mcmc.kernels import LowRankInverseMassMatrix, welford_algorithm
from weightscape.inference.mcmc.low_rank import SHRINKAGE, estimate_low_rank

_STAN_VARIANCE = 1e-3  # what Stan shrinks variances to: small, so that a poor estimate errs towards short steps

_welford: Any = welford_algorithm(is_diagonal_matrix=True)
_welford_init, _welford_update, _welford_final = _welford


class Mass(eqx.Module):
    """A rule that makes M⁻¹ from what a window of warm-up saw; its record is a tree of arrays of fixed shapes."""

    is_learned: ClassVar[bool]

    @abc.abstractmethod
    def first(self, position: Float[Array, " weight"]) -> Any:
        """M⁻¹ = I, in the form that this rule uses."""

    @abc.abstractmethod
    def begin(self, position: Float[Array, " weight"]) -> Any:
        """The record of a window in which nothing was seen yet."""

    @abc.abstractmethod
    def see(self, record: Any, position: Float[Array, " weight"], gradient: Float[Array, " weight"]) -> Any:
        """The record with one more position, and the gradient of the log density there."""

    @abc.abstractmethod
    def learn(self, record: Any, inverse_mass: Any) -> Any:
        """M⁻¹ at the end of a window, given the one before."""


@registered("inference.UnitMass")
class UnitMass(Mass):
    """M = I throughout."""

    is_learned: ClassVar[bool] = False

    def first(self, position: Float[Array, " weight"]) -> Float[Array, " weight"]:
        return jnp.ones_like(position)

    def begin(self, position: Float[Array, " weight"]) -> tuple:
        return ()

    def see(self, record: tuple, position: Float[Array, " weight"], gradient: Float[Array, " weight"]) -> tuple:
        return record

    def learn(self, record: tuple, inverse_mass: Float[Array, " weight"]) -> Float[Array, " weight"]:
        return inverse_mass


@registered("inference.DiagonalMass")
class DiagonalMass(Mass):
    """M⁻¹ = diag(s²) with s² the variances of the positions in a window.

    As in Stan the variances of n positions are shrunk: (n s² + 5 · 10⁻³) / (n + 5).
    """

    is_learned: ClassVar[bool] = True

    def first(self, position: Float[Array, " weight"]) -> Float[Array, " weight"]:
        return jnp.ones_like(position)

    def begin(self, position: Float[Array, " weight"]) -> Any:
        return jax.tree.map(jnp.asarray, _welford_init(position.size))

    def see(self, record: Any, position: Float[Array, " weight"], gradient: Float[Array, " weight"]) -> Any:
        return _welford_update(record, position)

    def learn(self, record: Any, inverse_mass: Float[Array, " weight"]) -> Float[Array, " weight"]:
        variance, count, _ = _welford_final(record)
        shrunk = (count * variance + SHRINKAGE * _STAN_VARIANCE) / (count + SHRINKAGE)
        return jnp.where(count > 1, shrunk, inverse_mass)  # one position has no variance


class Kept(NamedTuple):
    """The last positions of a window with their gradients, in a ring, and how many there were."""

    positions: Float[Array, "kept weight"]
    gradients: Float[Array, "kept weight"]
    num_seen: Int[Array, ""]


@registered("inference.LowRankMass")
class LowRankMass(Mass):
    """M⁻¹ = D^½ (I + U (Λ − I) Uᵀ) D^½: a diagonal, and a few directions that lie across the axes.

    - `rank`: the number of directions, columns of U. Those are kept whose scale lies farthest from one.
    - `num_kept`: how many of a window's last positions and gradients are used; a chain holds 2 · `num_kept` numbers
      for each weight.

    `low_rank.py` says how U and Λ are found. A transition costs 4 · `rank` multiplications for each weight more.

    Reference: Seyboldt et al. (2026), arXiv:2603.18845, algorithm 1.
    """

    is_learned: ClassVar[bool] = True

    rank: int = eqx.field(static=True, default=10)
    num_kept: int = eqx.field(static=True, default=128)

    def __check_init__(self):
        require_count("`rank` of LowRankMass", self.rank)
        asked = "`num_kept` of LowRankMass must be larger than its rank"
        require(self.num_kept > self.rank, asked, self.num_kept, "Keep at least ten times as many positions.")

    def first(self, position: Float[Array, " weight"]) -> LowRankInverseMassMatrix:
        rank = min(self.rank, position.size)
        directions = jnp.eye(position.size, rank, dtype=position.dtype)
        return LowRankInverseMassMatrix(jnp.ones_like(position), directions, jnp.ones_like(directions[0]))

    def begin(self, position: Float[Array, " weight"]) -> Kept:
        ring = jnp.zeros((self.num_kept, position.size), position.dtype)
        return Kept(ring, ring, jnp.asarray(0))

    def see(self, record: Kept, position: Float[Array, " weight"], gradient: Float[Array, " weight"]) -> Kept:
        row = record.num_seen % self.num_kept
        seen = Kept(record.positions.at[row].set(position), record.gradients.at[row].set(gradient), record.num_seen + 1)
        # One infinite gradient would spoil all directions for the rest of the run.
        usable = jnp.all(jnp.isfinite(gradient))
        return jax.tree.map(lambda new, old: jnp.where(usable, new, old), seen, record)

    def learn(self, record: Kept, inverse_mass: LowRankInverseMassMatrix) -> LowRankInverseMassMatrix:
        num_rows = jnp.minimum(record.num_seen, self.num_kept)
        return estimate_low_rank(record.positions, record.gradients, num_rows, len(inverse_mass.lam))
