"""The posterior: the density that every method approximates.

    log p(D, θ) = Σ_i log p(y_i | f(x_i; θ)) + log p(θ),       log p(θ | D) = log p(D, θ) − log p(D)

Samplers move an unconstrained position z with θ = constrain(z), so the density over positions carries the
Jacobian of that map. With powers β and γ the tempered target is

    β Σ_i log p(y_i | f(x_i; θ)) + γ log p(θ) + log |det ∂θ/∂z|.

Scaling happens here and nowhere else: the network sees standardised inputs and targets, and log p(y) is given in
the targets' original units.
"""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from weightscape.core.checks import require, require_count
from weightscape.core.types import PRNGKey, Scalar
from weightscape.data import Batch, Scaling
from weightscape.posterior.joint import Joint
from weightscape.posterior.parameters import Parameters, Position


class Posterior(eqx.Module):
    """log p(D, θ) over positions; made by `Model.condition(batch)`.

    - `model`: the model with its output size bound.
    - `x`, `y`: the data as the network sees them (standardised where the batch carried a scaling).
    - `scaling`: how to get there from original units, or None.
    - `example`: a few rows of the data in original units.
    - `likelihood_power`, `prior_power`: β and γ.
    - `num_shards`: over how many devices samplers split the data.
    """

    model: Joint
    x: Float[Array, "point ..."]
    y: Shaped[Array, "point ..."]
    scaling: Scaling | None
    example: Batch
    likelihood_power: Scalar
    prior_power: Scalar
    num_shards: int = eqx.field(static=True, default=1)

    @property
    def num_points(self) -> int:
        """How many data points the posterior is conditioned on."""
        return self.x.shape[0]

    def constrain(self, position: Position) -> Parameters:
        """The parameters θ at a position."""
        return self.model.place(position).parameters

    def unconstrain(self, parameters: Parameters) -> Position:
        """The position of given parameters."""
        return self.model.unplace(parameters)

    def log_density(self, position: Position) -> Scalar:
        """β log p(D | θ) + γ log p(θ) + log |det J|: the log density of a position, unnormalised in D."""
        placed = self.model.place(position)
        log_likelihood = jnp.sum(self._pointwise(placed.parameters, self.x, self.y))
        return self._combine(log_likelihood, placed.log_prior, placed.log_jacobian)

    def log_density_estimate(self, position: Position, indices: Int[Array, " batch"]) -> Scalar:
        """An unbiased estimate of `log_density` from the points at `indices`, drawn uniformly.

        The likelihood's sum over B points is scaled by N/B.
        """
        placed = self.model.place(position)
        pointwise = self._pointwise(placed.parameters, self.x[indices], self.y[indices])
        return self._combine(self.num_points * jnp.mean(pointwise), placed.log_prior, placed.log_jacobian)

    def log_prior(self, position: Position) -> Scalar:
        """log p(θ) + log |det J|: the prior's density of a position, untempered."""
        placed = self.model.place(position)
        return placed.log_prior + placed.log_jacobian

    def log_likelihood(self, position: Position, batch: Batch | None = None) -> Scalar:
        """log p(D | θ), untempered, for the posterior's own data or another batch in original units."""
        return jnp.sum(self.pointwise_log_likelihood(self.constrain(position), batch))

    def pointwise_log_likelihood(self, parameters: Parameters, batch: Batch | None = None) -> Float[Array, " point"]:
        """log p(y_i | f(x_i; θ)) of each point, in the targets' original units."""
        if batch is None:
            return self._pointwise(parameters, self.x, self.y)
        if self.scaling is None:
            return self._pointwise(parameters, batch.x, batch.y)
        return self._pointwise(parameters, self.scaling.inputs(batch.x), self.scaling.targets(batch.y))

    def tempered(self, *, likelihood: float | Scalar = 1.0, prior: float | Scalar = 1.0) -> "Posterior":
        """The target with powers β = `likelihood` and γ = `prior`.

        A cold posterior at temperature T has both at 1/T; thermodynamic integration has β in [0, 1] and γ = 1.
        """
        powers = (jnp.asarray(likelihood, self.x.dtype), jnp.asarray(prior, self.x.dtype))
        return eqx.tree_at(lambda p: (p.likelihood_power, p.prior_power), self, powers)

    def at_temperature(self, temperature: Scalar) -> "Posterior":
        """The target with both powers divided by T = `temperature`: cold below one, flat above."""
        return self.tempered(likelihood=self.likelihood_power / temperature, prior=self.prior_power / temperature)

    def sharded(self, num_shards: int) -> "Posterior":
        """The same posterior, whose data samplers split over `num_shards` devices for each chain.

        For full-batch gradients on data that are large for one device; results agree to rounding.
        """
        require_count("`num_shards` of sharded", num_shards)
        asked = f"Data split over {num_shards} devices must have a multiple of {num_shards} rows"
        require(self.num_points % num_shards == 0, asked, self.num_points, "Leave a few rows out or split them less.")
        return dataclasses.replace(self, num_shards=num_shards)

    def rows(self) -> tuple[Array, ...]:
        """The arrays that have a row for each data point."""
        return self.x, self.y

    def start_position(self, key: PRNGKey) -> Position:
        """Where an optimiser or a chain starts: the network's own initial weights."""
        return self.model.start_position(key, self.x[:1])

    def sample_prior_position(self, key: PRNGKey) -> Position:
        """A position drawn from the prior."""
        return self.model.sample_position(key, self.x[:1])

    def _combine(self, log_likelihood: Scalar, log_prior: Scalar, log_jacobian: Scalar) -> Scalar:
        return self.likelihood_power * log_likelihood + self.prior_power * log_prior + log_jacobian

    def _pointwise(self, parameters: Parameters, x: Array, y: Array) -> Float[Array, " point"]:
        outputs = self.model.network.apply(parameters.network, x)
        log_density = self.model.likelihood.log_density(outputs, y, parameters.likelihood)
        # log p(y) = log p(y / s) − log s: the standardised target's density, in original units.
        return log_density if self.scaling is None else log_density - self.scaling.log_target_scale()
