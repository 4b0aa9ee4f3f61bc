"""Densities that are judged by draws of the posterior: log weights, and J.

log w(θ) = log p(D, θ) − log q(θ)
"""

import abc

import jax
import numpy as np
from jaxtyping import Float

from weightscape.core import PRNGKey, Scalar
from weightscape.core.batches import in_batches
from weightscape.core.checks import InputError
from weightscape.draws import Draws
from weightscape.flow.gap import Gap, gap_of
from weightscape.inference.approximation import Approximation
from weightscape.posterior import Position


class Judged(Approximation):
    """An approximation whose log q may be an estimate, for which it draws."""

    @abc.abstractmethod
    def log_density(self, position: Position, key: PRNGKey | None = None) -> Scalar:
        """log q(position); `key` is for what is drawn on the way."""

    def log_weights(self, draws: Draws) -> Float[np.ndarray, "chain draw"]:
        """log p(D, θ) − log q(θ) of any draws; its own carry their log q already."""
        if draws.log_proposal is not None and draws.facts == self.facts:
            return np.asarray(draws.log_density, np.float64) - np.asarray(draws.log_proposal, np.float64)
        return np.asarray(draws.log_density, np.float64) - self.log_densities(draws)

    def log_densities(self, draws: Draws) -> Float[np.ndarray, "chain draw"]:
        """log q of any draws, a batch at a time."""
        shape, positions = np.shape(draws.log_density), draws.positions()
        rows = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), positions)
        keys = jax.random.split(jax.random.key(0), len(draws))  # of their own: their noise is not one for all
        found = in_batches(self.bare().log_density, self._batch_size(len(draws)), rows, keys)
        return np.asarray(found, np.float64).reshape(shape)

    def gap(self, key: PRNGKey, held_out_draws: Draws, *, num_draws: int = 256) -> Gap:
        """J = KL(p ‖ q) + KL(q ‖ p) in nats, with its standard error.

        - `held_out_draws`: healthy draws of the posterior that q has not seen.  `num_draws`: of q.
        """
        if self.posterior is None:
            raise InputError("`gap` must know the data, got a flow without. Pass `load(path, posterior)`.")
        ours = self.sample(key, num_draws)
        assert ours.log_proposal is not None
        under_q = np.ravel(ours.log_density).astype(np.float64) - np.ravel(ours.log_proposal)
        under_p = np.asarray(held_out_draws.log_density, np.float64) - self.log_densities(held_out_draws)
        return gap_of(under_p, under_q)
