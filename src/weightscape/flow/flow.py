"""A flow over weights: networks drawn by carrying a source along a learned velocity field, with their exact density.

    θ = T(z₀),   z₀ ~ q₀,      log q(θ) = log q₀(z₀) − ∫ div v dt − log |det ∂θ/∂z|

Its weights against the posterior, log p(D, θ) − log q(θ), say how good it is and correct it; they average to the
evidence.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from weightscape.core import PRNGKey, Scalar, map_chains
from weightscape.core.checks import require
from weightscape.core.facts import Facts
from weightscape.core.keys import require_key
from weightscape.draws import Draws, Header, Sampled
from weightscape.flow.divergence import Divergence, Exact, Hutchinson
from weightscape.flow.judged import Judged
from weightscape.flow.objective import Objective
from weightscape.flow.source import Source
from weightscape.flow.transport import Solver, Transported, carry, carry_with_density, require_solver
from weightscape.flow.waypoints import carry_with_path, require_times
from weightscape.inference.evidence import Evidence, LogEvidence
from weightscape.posterior import Position, Posterior

_AT_ONCE = 4096
"""How many products of the Jacobian are in flight, over all draws of a batch."""


class Flow(Judged):
    """A transported density over weights; made by `FlowMatching`.

    - `model`: what was trained.  `objective`: how its outputs are velocities.  `source`: where draws start.
    - `solver`, `divergence`: how they are carried; `with_solver` and `with_divergence` change that after training.
    - `method`: the settings that it was made with, which rebuild the model's structure.
    """

    header: Header
    posterior: Posterior | None
    estimate: LogEvidence | None = eqx.field(static=True)
    facts: Facts = eqx.field(static=True)
    model: Any
    objective: Objective
    source: Source
    solver: Solver
    divergence: Divergence
    method: Any

    @property
    def is_proper(self) -> bool:
        return True

    @property
    def num_weights(self) -> int:
        """The length of a vector."""
        return self.source.layout.size

    def sample_position(self, key: PRNGKey) -> Position:
        return self.source.position(carry(self.solver, self._velocity, self.source.sample(key)))

    def sample_with_density(self, key: PRNGKey) -> tuple[Position, Scalar]:
        key_source, key_probes = jax.random.split(key)
        return self.push(self.source.sample(key_source), key_probes)

    def push(self, z: Float[Array, " weight"], key: PRNGKey | None = None) -> tuple[Position, Scalar]:
        """Where a vector of the source is carried, and log q there."""
        there = self._carried(z, key, first=0.0, last=1.0)
        log_density = self.source.log_density(z) + jnp.mean(there.log_change) - self.source.log_volume
        return self.source.position(there.x), log_density

    def log_density(self, position: Position, key: PRNGKey | None = None) -> Scalar:
        """log q(position); `key` is for the probes of a divergence that has some."""
        back = self._carried(self.source.vector(position), key, first=1.0, last=0.0)
        return self.source.log_density(back.x) + jnp.mean(back.log_change) - self.source.log_volume

    def path(self, key: PRNGKey, num_draws: int, times: Float[Array, " time"]) -> Position:
        """Networks on their way from source to posterior, at increasing times: leading axes (draw, time)."""
        require_key(key, "path")
        require_times(times)
        sources = jax.vmap(self.source.sample)(jax.random.split(key, num_draws))
        return _path(self.bare(), sources, jnp.asarray(times))

    def log_weights(self, draws: Draws) -> Float[np.ndarray, "chain draw"]:
        self._require_exact("log_weights")
        return super().log_weights(draws)

    def evidence(self, key: PRNGKey, num_draws: int) -> Evidence:
        """log p(D) by importance sampling, its standard error, and how far it can be trusted."""
        self._require_exact("evidence")
        return super().evidence(key, num_draws)

    def with_solver(self, solver: Solver) -> "Flow":
        """The same flow, solved in another way."""
        require_solver(solver)
        return dataclasses.replace(self, solver=solver)

    def with_divergence(self, divergence: Divergence) -> "Flow":
        """The same flow, with another divergence."""
        return dataclasses.replace(self, divergence=divergence)

    @property
    def _velocity(self) -> Any:
        return self.objective.velocity(self.model)

    def _carried(self, z: Array, key: PRNGKey | None, *, first: float, last: float) -> Transported:
        key = jax.random.key(0) if key is None else key
        return carry_with_density(key, self.solver, self._velocity, self.divergence, z, first=first, last=last)

    def _require_exact(self, what: str) -> None:
        remedy = "Pass `flow.with_divergence(Exact())`: noise in log q biases weights."
        came = type(self.divergence).__name__
        require(not isinstance(self.divergence, Hutchinson), f"`{what}` must have an exact divergence", came, remedy)

    def _drawn(self, keys: Key[Array, " draw"]) -> Sampled:
        return map_chains(self.bare().drawn, keys)

    def _batch_size(self, num_draws: int) -> int:
        at_once = self.divergence.chunk_size if isinstance(self.divergence, Exact) else 8
        return min(2 ** (num_draws - 1).bit_length(), max(1, _AT_ONCE // min(at_once, self.num_weights)))


@eqx.filter_jit
def _path(flow: Flow, sources: Float[Array, "draw weight"], times: Float[Array, " time"]) -> Position:
    along = jax.vmap(lambda z: carry_with_path(flow.solver, flow.objective.velocity(flow.model), z, times))(sources)
    return jax.vmap(jax.vmap(flow.source.position))(along)
