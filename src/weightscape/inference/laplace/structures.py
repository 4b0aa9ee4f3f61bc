"""Which parts of the curvature a Laplace approximation keeps.

full         all of H
by layer     the block of each layer
Kronecker    of each dense or convolution layer the nearest A ⊗ G; of all other weights the diagonal, and said so
low rank     the r directions of largest curvature, by Lanczos iteration
diagonal     H_jj
"""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from weightscape.core import registered
from weightscape.core.checks import InputError, require, require_count
from weightscape.core.choices import chosen
from weightscape.inference.laplace.curvature import Curvature, RowCurvature
from weightscape.inference.laplace.information import (
    BlockInformation,
    DenseInformation,
    DiagonalInformation,
    Information,
    LowRankInformation,
)
from weightscape.inference.laplace.kronecker_factors import kronecker_blocks
from weightscape.inference.laplace.layer_diagonal import layered_diagonal
from weightscape.inference.laplace.neighbourhood import Neighbourhood
from weightscape.inference.laplace.products import dense, diagonal, times

_MOST_DENSE = 20_000
_FULL_BY_DEFAULT = 1_500


class Fit(NamedTuple):
    """The information in the weights that move, and what there is to say about how it was found."""

    information: Information
    notes: dict[str, Any]


class Structure(eqx.Module):
    """A choice of what is kept of H."""

    @abc.abstractmethod
    def fit(self, curvature: Curvature, around: Neighbourhood) -> Fit:
        """H in this structure, over the weights that move."""


@registered("inference.FullStructure")
class FullStructure(Structure):
    """All of H: exact, for up to some thousands of weights."""

    def fit(self, curvature: Curvature, around: Neighbourhood) -> Fit:
        _require_small(around.num_free, "All of the curvature")
        return Fit(DenseInformation(dense(curvature, around)), {})


@registered("inference.LayerStructure")
class LayerStructure(Structure):
    """The blocks of H over the leaves of each layer: those with the same parent in the tree."""

    def fit(self, curvature: Curvature, around: Neighbourhood) -> Fit:
        numbers = {name: around.numbers()[where] for name, where in around.layout.layers().items()}
        blocks = {name: which[which >= 0] for name, which in numbers.items() if np.any(which >= 0)}
        for name, where in blocks.items():
            _require_small(len(where), f"The block of {name}")
        parts = [DenseInformation(dense(curvature, around.within(where))) for where in blocks.values()]
        return Fit(BlockInformation(tuple(parts), _arrays(blocks.values()), around.num_free), {"blocks": list(blocks)})


@registered("inference.DiagonalStructure")
class DiagonalStructure(Structure):
    """The diagonal of H."""

    def fit(self, curvature: Curvature, around: Neighbourhood) -> Fit:
        if isinstance(curvature, RowCurvature):
            return Fit(DiagonalInformation(layered_diagonal(curvature, around)), {})
        return Fit(DiagonalInformation(diagonal(curvature, around)), {})


@registered("inference.KroneckerStructure")
class KroneckerStructure(Structure):
    """Kronecker factors of each dense and convolution layer, found by tracing; a diagonal for everything else.

    - `joint_bias`: whether a bias is a row of its layer's matrix, so that it correlates with the weights.

    Reference: Martens & Grosse (2015); Grosse & Martens (2016) for convolutions.
    """

    joint_bias: bool = eqx.field(static=True, default=True)

    def fit(self, curvature: Curvature, around: Neighbourhood) -> Fit:
        if not isinstance(curvature, RowCurvature):
            raise InputError(
                "The curvature of a Kronecker structure must be a sum of outer products, got the exact Hessian. "
                'Use "gauss_newton" or "fisher".'
            )
        blocks, left_out = kronecker_blocks(curvature, around, joint_bias=self.joint_bias)
        covered = np.concatenate([np.asarray(block.places) for block in blocks] or [np.zeros(0, int)])
        rest = np.setdiff1d(np.arange(around.num_free), covered)
        parts: list[Information] = [block.information for block in blocks]
        places = [block.places for block in blocks]
        if len(rest):
            parts.append(DiagonalInformation(diagonal(curvature, around.within(rest))))
            places.append(rest)
        notes = {"kronecker": [block.name for block in blocks], "diagonal": left_out}
        return Fit(BlockInformation(tuple(parts), _arrays(places), around.num_free), notes)


@registered("inference.LowRankStructure")
class LowRankStructure(Structure):
    """The `rank` directions of largest curvature; in all others the prior alone speaks."""

    rank: int = eqx.field(static=True, default=20)

    def __check_init__(self):
        require_count("`rank` of LowRankStructure", self.rank)

    def fit(self, curvature: Curvature, around: Neighbourhood) -> Fit:
        fits = self.rank < around.num_free
        asked = f"`rank` of LowRankStructure must be below the {around.num_free} weights"
        require(fits, asked, self.rank, "Pass a smaller rank, or use the full structure.")
        start = np.random.default_rng(0).normal(size=around.num_free)  # any start does; a fixed one repeats
        # Rounding of the products bounds what an eigenvalue can be known to.
        tolerance: Any = 100 * float(jnp.finfo(around.location.dtype).eps)
        values, vectors = eigsh(_Product(curvature, around), k=self.rank, which="LA", v0=start, tol=tolerance)
        positive = np.maximum(values, 0)
        notes = {"largest": float(values[-1]), "smallest_kept": float(values[0])}
        factor = jnp.asarray(vectors * np.sqrt(positive)[None, :], around.location.dtype)
        return Fit(LowRankInformation(factor), notes)


STRUCTURES = {
    "full": FullStructure,
    "by_layer": LayerStructure,
    "kronecker": KroneckerStructure,
    "low_rank": LowRankStructure,
    "diagonal": DiagonalStructure,
}


def as_structure(value: Structure | str | None) -> Structure | None:
    """The structure of that name, or the object itself; None leaves the choice to `default_structure`."""
    return None if value is None else chosen("`structure` of Laplace", value, Structure, STRUCTURES)


def default_structure(curvature: Curvature, num_free: int) -> Structure:
    """All of H where it is small, Kronecker factors beyond."""
    small = num_free <= _FULL_BY_DEFAULT or not isinstance(curvature, RowCurvature)
    return FullStructure() if small else KroneckerStructure()


def _arrays(places: Any) -> tuple:
    return tuple(jnp.asarray(where) for where in places)


def _require_small(num_weights: int, what: str) -> None:
    asked = f"{what} must be over at most {_MOST_DENSE} weights"
    require(num_weights <= _MOST_DENSE, asked, num_weights, 'Use structure "kronecker", "low_rank" or "diagonal".')


class _Product(LinearOperator):
    """H v as scipy's Lanczos iteration asks for it."""

    def __init__(self, curvature: Curvature, around: Neighbourhood):
        super().__init__(around.location.dtype, (around.num_free, around.num_free))
        self._curvature, self._around = curvature, around

    def _matvec(self, x: np.ndarray) -> np.ndarray:
        flat = jnp.asarray(x.ravel(), self._around.location.dtype)
        return np.asarray(times(self._curvature, self._around, flat))
