"""Three geometries of weight space, and the flows that they make of one velocity field.

- `Euclidean`: the weights as they are; straight paths from a normal.
- `Normalized`: incoming weights of unit norm; straight paths, which cut through the spheres that both ends lie on.
- `Geometric`: the same ends; geodesic paths, tangent velocities, steps by the exponential map.

Rescaling a ReLU unit changes the weights and not the function. Euclidean flows learn all its copies, the others one.
The scale of the last layer belongs to no unit and stays a coordinate. So does the shift b of a unit, as b / ‖w‖, unless
`with_shifts` brings it to the sphere too, ‖(w, b)‖ = 1: b / ‖w‖ has no bound where training has shrunk w to nothing.

A Gaussian prior tells rescaled networks apart, so a Bayesian posterior needs the Euclidean one; the others are for
populations of trained networks.
"""

import abc

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int

from weightscape.core import registered
from weightscape.core.checks import InputError, require_type
from weightscape.core.layout import Layout
from weightscape.flow.coupling_costs import Costs, SquaredDistances, SquaredGeodesics
from weightscape.flow.exp_map import ExpMapSteps
from weightscape.flow.fields import Field
from weightscape.flow.paths import GeodesicPath, Path, Straight
from weightscape.flow.source import Source, WhitenedSource
from weightscape.flow.sphere_source import SphereSource
from weightscape.flow.tangent_field import TangentField
from weightscape.flow.transport import FixedSteps, Solver
from weightscape.symmetry import Symmetry


class Geometry(eqx.Module):
    """What a flow over networks is made of: coordinates and source, path, velocities, steps, costs of couplings."""

    @abc.abstractmethod
    def source(self, symmetry: Symmetry, layout: Layout, scale: Float[Array, " weight"]) -> Source:
        """Where networks start, and which vectors they are.

        - `symmetry`: of the networks' functions, rescalings included.  `scale`: the size of each weight.
        """

    @abc.abstractmethod
    def path(self, source: Source) -> Path:
        """From a vector of the source to that of a network."""

    @abc.abstractmethod
    def field(self, source: Source, field: Field) -> Field:
        """The velocities that a field stands for."""

    @abc.abstractmethod
    def require_solver(self, steps: Solver) -> None:
        """Raise where velocities cannot be followed so."""

    @abc.abstractmethod
    def solver(self, source: Source, steps: Solver) -> Solver:
        """How velocities are followed."""

    @abc.abstractmethod
    def costs(self, source: Source) -> Costs:
        """What optimal transport makes small."""

    @abc.abstractmethod
    def require_density(self) -> None:
        """Raise where flows have no density."""


@registered("flow.Euclidean")
class Euclidean(Geometry):
    """The weights as they are, each divided by its size; straight paths. The density is one over all weights."""

    def source(self, symmetry: Symmetry, layout: Layout, scale: Float[Array, " weight"]) -> Source:
        return WhitenedSource(scale=scale, layout=layout)

    def path(self, source: Source) -> Path:
        return Straight()

    def field(self, source: Source, field: Field) -> Field:
        return field

    def require_solver(self, steps: Solver) -> None:
        """Any will do."""

    def solver(self, source: Source, steps: Solver) -> Solver:
        return steps

    def costs(self, source: Source) -> Costs:
        return SquaredDistances()

    def require_density(self) -> None:
        """It has one."""


@registered("flow.Normalized")
class Normalized(Geometry):
    """Normalised weights and straight paths. What it draws has incoming weights of norm one up to its own errors.

    - `with_shifts`: shifts are normalised along with the incoming weights.
    """

    with_shifts: bool = eqx.field(static=True, default=False, kw_only=True)

    def source(self, symmetry: Symmetry, layout: Layout, scale: Float[Array, " weight"]) -> Source:
        return SphereSource.of(symmetry, layout, scale, with_shifts=self.with_shifts)

    def path(self, source: Source) -> Path:
        return Straight()

    def field(self, source: Source, field: Field) -> Field:
        return field

    def require_solver(self, steps: Solver) -> None:
        """Any will do."""

    def solver(self, source: Source, steps: Solver) -> Solver:
        return steps

    def costs(self, source: Source) -> Costs:
        return SquaredDistances()

    def require_density(self) -> None:
        raise InputError(
            "`log_density` must be asked of a flow that stays on its manifold, got a Normalized one, whose straight "
            "path leaves the spheres that its networks lie on: it has no density over them. Use `Geometric()`."
        )


@registered("flow.Geometric")
class Geometric(Geometry):
    """Normalised weights and geodesics. The density is one with respect to the volume of spheres and flat weights.

    - `with_shifts`: shifts lie on the spheres of their units, and are no flat weights.
    """

    with_shifts: bool = eqx.field(static=True, default=False, kw_only=True)

    def source(self, symmetry: Symmetry, layout: Layout, scale: Float[Array, " weight"]) -> Source:
        return SphereSource.of(symmetry, layout, scale, with_shifts=self.with_shifts)

    def path(self, source: Source) -> Path:
        return GeodesicPath(_on_spheres(source).manifold)

    def field(self, source: Source, field: Field) -> Field:
        return TangentField(field, _on_spheres(source).manifold)

    def require_solver(self, steps: Solver) -> None:
        asked, remedy = "`solver` of a Geometric flow must be FixedSteps", "Pass `FixedSteps(24)`, say."
        require_type(isinstance(steps, FixedSteps | ExpMapSteps), asked, type(steps).__name__, remedy)

    def solver(self, source: Source, steps: Solver) -> Solver:
        if isinstance(steps, ExpMapSteps):
            return steps
        assert isinstance(steps, FixedSteps)
        return ExpMapSteps(_on_spheres(source).manifold, steps)

    def costs(self, source: Source) -> Costs:
        return SquaredGeodesics(_on_spheres(source).manifold)

    def require_density(self) -> None:
        """It has one."""


def size_of_weights(
    vectors: Float[np.ndarray, "draw weight"], labels: Int[np.ndarray, " weight"]
) -> Float[np.ndarray, " weight"]:
    """The root mean square of each weight over networks, the same for weights of one label; 1 where all are zero."""
    squares = np.mean(np.asarray(vectors, np.float64) ** 2, axis=0)
    means = (np.bincount(labels, squares) / np.bincount(labels))[labels]
    return np.where(means > 0, np.sqrt(means), 1.0)


def reach_of_weights(
    vectors: Float[np.ndarray, "draw weight"], labels: Int[np.ndarray, " weight"]
) -> Float[np.ndarray, " weight"]:
    """The largest |z| of each weight over networks, the same for weights of one label."""
    largest = np.zeros(np.max(labels) + 1)
    np.maximum.at(largest, labels, np.max(np.abs(vectors), axis=0))
    return largest[labels]


def _on_spheres(source: Source) -> SphereSource:
    assert isinstance(source, SphereSource)
    return source
