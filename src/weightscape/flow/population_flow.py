"""A flow over a population of networks: fresh networks like those that training ends in, in one of three geometries.

    θ = T(z₀),   z₀ ~ q₀,      log q(θ) = log q₀(z₀) − ∫ div_g v dt − log |det ∂θ/∂z|

The density is one over networks of unit scales where the geometry has spheres, the same for all equivalent networks. It
is not one over all weights, so there is nothing to weigh against a posterior: no evidence, no J. `FlowMatching` is for
those. Draws come without log q, which costs as many products as there are weights; `log_densities` has it.

With conditions it is a flow for each of their values, log q(θ | c) and all: the one that `given` returns.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Key

from weightscape.core import PRNGKey, Scalar, map_chains
from weightscape.core.batches import in_batches
from weightscape.core.checks import require
from weightscape.core.facts import Facts
from weightscape.core.keys import require_key
from weightscape.draws import Draws, Header, Sampled
from weightscape.flow.architecture import Revised
from weightscape.flow.divergence import Divergence, Exact
from weightscape.flow.given import require_given
from weightscape.flow.objective import Objective
from weightscape.flow.revised_field import RevisedField
from weightscape.flow.source import Source
from weightscape.flow.training_set import require_shapes
from weightscape.flow.transport import Solver, carry_with_density
from weightscape.flow.waypoints import carry_with_path, require_times
from weightscape.inference.approximation import Approximation
from weightscape.inference.evidence import LogEvidence
from weightscape.posterior import Position, Posterior

_AT_ONCE = 4096
"""How many products of the Jacobian are in flight, over all networks of a batch."""


class PopulationFlow(Approximation):
    """A generator of networks; made by `PopulationMatching`.

    - `model`: what was trained.  `objective`: how its outputs are velocities.  `source`: where networks start.
    - `reach`: the largest |z| of each weight in training, or of one that may stand in its place; infinite if unknown.
    - `solver`, `divergence`: how they are carried; the geometry may have its own steps for the solver's numbers.
    - `method`: the settings that it was made with; its geometry is the flow's.
    """

    header: Header
    posterior: Posterior | None
    estimate: LogEvidence | None = eqx.field(static=True)
    facts: Facts = eqx.field(static=True)
    model: Any
    objective: Objective
    source: Source
    reach: Float[Array, " weight"]
    solver: Solver
    divergence: Divergence
    method: Any

    @property
    def is_proper(self) -> bool:
        return False

    def sample_position(self, key: PRNGKey) -> Position:
        start = self.source.sample(key)
        key_noise = jax.random.fold_in(key, 1)  # the start is of the key itself, whatever the solver
        end = self._solver.draw(key_noise, self.objective.path, self._velocity, start, self.reach)
        return self.source.position(end)

    def sample_with_density(self, key: PRNGKey) -> tuple[Position, Scalar]:
        return self.sample_position(key), jnp.full((), jnp.nan, self.source.layout.dtype)

    def log_density(self, position: Position, key: PRNGKey | None = None) -> Scalar:
        """log q of a network, and of all that are equivalent; `key` is for the probes of a divergence that has some."""
        self.method.geometry.require_density()
        key, z = jax.random.key(0) if key is None else key, self.source.vector(position)
        back = carry_with_density(key, self._solver, self._velocity, self.divergence, z, first=1.0, last=0.0)
        return self.source.log_density(back.x) + jnp.mean(back.log_change) - self.source.log_volume

    def log_densities(self, draws: Draws) -> Float[np.ndarray, "chain draw"]:
        """log q of any draws, a batch at a time."""
        self.method.geometry.require_density()
        require_shapes(self.source, draws.positions(), "`draws` of log_densities")
        rows = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), draws.positions())
        keys = jax.random.split(jax.random.key(0), len(draws))  # of their own: their noise is not one for all
        at_once = self.divergence.chunk_size if isinstance(self.divergence, Exact) else 8
        fitting = max(1, _AT_ONCE // min(at_once, self.source.layout.size))
        found = in_batches(self.bare().log_density, min(fitting, len(draws)), rows, keys)
        return np.asarray(found, np.float64).reshape(np.shape(draws.log_density))

    def path(self, key: PRNGKey, num_draws: int, times: Float[Array, " time"]) -> Position:
        """Networks on their way from the source, at increasing times: leading axes (draw, time)."""
        require_key(key, "path")
        require_times(times)
        return _path(self.bare(), jax.random.split(key, num_draws), jnp.asarray(times))

    def given(self, value: ArrayLike | None, *, strength: ArrayLike | None = None) -> "PopulationFlow":
        """The flow to networks of a value, with its log q(θ | c); another value, or strength, compiles nothing.

        - `value`: a label, or a property or loss in its own units, at most a deviation beyond those of training; None
          for the whole population.
        - `strength`: w of v(∅) + w (v(c) − v(∅)), which costs two evaluations of the field; None for v(c) alone.
        """
        require_given(self.model)
        fits = bool(self.method.conditions.dropped > 0) or (value is not None and strength is None)
        asked = "A flow that is asked for the whole population, or with a strength, must know it without conditions"
        require(fits, asked, "one trained with `dropped=0`", "Train with a share such as 0.1.")
        plain = lambda each: None if each is None else np.asarray(each).item()
        bound = self.model.at(value, strength)
        facts = self.facts.plus(given=plain(value), strength=plain(strength))
        return dataclasses.replace(self, model=bound, facts=facts)

    def with_solver(self, solver: Solver) -> "PopulationFlow":
        """The same flow, solved in another way."""
        self.method.require_solver(solver)
        return dataclasses.replace(self, solver=solver)

    def with_divergence(self, divergence: Divergence) -> "PopulationFlow":
        """The same flow, with another divergence."""
        return dataclasses.replace(self, divergence=divergence)

    def with_revisions(self, count: int) -> "PopulationFlow":
        """The same flow, whose field revises each draft so often, by the metanet that it has.

        It is another field, with a density of its own, that costs as many looks at the data. Revising more often than
        in training leads a small flow further that draws without noise; a well-trained one that draws with noise gains
        nothing by it (784-32-32-10 in `experiments/thesis_flows.md`).
        """
        architecture = self.method.architecture
        asked, remedy = "A flow must revise to do so more often", "Train one with `architecture=Revised()`."
        require(isinstance(architecture, Revised), asked, type(architecture).__name__, remedy)
        method = dataclasses.replace(self.method, architecture=dataclasses.replace(architecture, num_revisions=count))
        is_field = lambda node: isinstance(node, RevisedField)
        often = lambda node: dataclasses.replace(node, num_revisions=count) if is_field(node) else node
        model = jax.tree.map(often, self.model, is_leaf=is_field)
        return dataclasses.replace(self, model=model, method=method, facts=self.facts.plus(num_revisions=count))

    @property
    def _velocity(self) -> Any:
        return self.objective.velocity(self.model)

    @property
    def _solver(self) -> Solver:
        return self.method.geometry.solver(self.source, self.solver)

    def _drawn(self, keys: Key[Array, " draw"]) -> Sampled:
        return map_chains(self.bare().drawn, keys)


@eqx.filter_jit
def _path(flow: PopulationFlow, keys: Key[Array, " draw"], times: Float[Array, " time"]) -> Position:
    solver, velocity = flow.method.geometry.solver(flow.source, flow.solver), flow.objective.velocity(flow.model)
    along = jax.vmap(lambda key: carry_with_path(solver, velocity, flow.source.sample(key), times))(keys)
    return jax.vmap(jax.vmap(flow.source.position))(along)
