"""An approximation is a density over positions that can be sampled and evaluated.

    q(position) ≈ p(position | D)

Draws from it carry both densities, log p(D, θ) and log q, so that what it gets wrong can be measured and corrected:

    p(D) = E_q[p(D, θ) / q(θ)]
"""

import abc
import dataclasses
import os
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from weightscape.core import PRNGKey, Scalar, tree
from weightscape.core.checks import InputError, require_count, require_type
from weightscape.core.facts import Facts
from weightscape.core.keys import require_key
from weightscape.draws import Draws, Header, Health, Sampled
from weightscape.inference.approximation_files import load_approximation, write_approximation
from weightscape.inference.evidence import Evidence, LogEvidence, importance_evidence
from weightscape.networks import Network, widest_bytes
from weightscape.posterior import Position, Posterior

LINEARISED = "linearised"
"""Among the facts: whether the density is that of the network linearised around its mean, which then predicts best."""

_BATCH_BYTES = 256 * 2**20


class Approximation(eqx.Module):
    """A normalised density over positions.

    - `header`: the model, its scaling and an example, which draws carry on.
    - `posterior`: the target, where it is at hand. One that was loaded without has draws whose log p(D, θ) is NaN.
    - `estimate`: what it says about log p(D), if anything.
    - `facts`: the method, its settings, its time.
    """

    header: eqx.AbstractVar[Header]
    posterior: eqx.AbstractVar[Posterior | None]
    estimate: eqx.AbstractVar[LogEvidence | None]
    facts: eqx.AbstractVar[Facts]

    @abc.abstractmethod
    def sample_position(self, key: PRNGKey) -> Position:
        """One position from q."""

    @abc.abstractmethod
    def log_density(self, position: Position) -> Scalar:
        """log q(position)."""

    def sample_with_density(self, key: PRNGKey) -> tuple[Position, Scalar]:
        """One position from q, and log q there: for those that get both for less than one after the other."""
        position = self.sample_position(key)
        return position, self.log_density(position)

    @property
    @abc.abstractmethod
    def is_proper(self) -> bool:
        """Whether q has a density over all weights; not so where some are held fixed."""

    @property
    def log_evidence(self) -> Scalar:
        """The approximation's own value of log p(D), in nats; `estimate` says of which kind, and its error."""
        if self.estimate is None:
            name = self.facts.get("method", type(self).__name__)
            raise InputError(
                f"`log_evidence` must be asked of a method that has one, got {name}. Use Laplace, a variational "
                "method or NeuralLinear, or `evidence(key, num_draws)`, which weighs draws."
            )
        return jnp.asarray(self.estimate.value)

    def sample(self, key: PRNGKey, num_draws: int) -> Draws:
        """Independent draws, as one chain, with log p(D, θ) and, where q is proper, log q of each."""
        require_key(key, "sample")
        require_count("`num_draws` of sample", num_draws)
        keys, batch_size = jax.random.split(key, num_draws), self._batch_size(num_draws)
        parts = []
        for start in range(0, num_draws, batch_size):
            rows = np.minimum(np.arange(start, start + batch_size), num_draws - 1)  # padded, to compile once
            part = self._drawn(keys[rows])
            kept = min(batch_size, num_draws - start)
            parts.append(jax.tree.map(lambda leaf, kept=kept: np.asarray(leaf)[None, :kept], part))
        joined = jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *parts)
        own = {} if self.estimate is None else {"log_evidence": dataclasses.asdict(self.estimate)}
        proposal, facts = joined.log_proposal if self.is_proper else None, self.facts.plus(**own)
        return Draws(
            joined.params, joined.log_density, *self.header, {}, log_proposal=proposal, health=Health(1), facts=facts
        )

    def evidence(self, key: PRNGKey, num_draws: int) -> Evidence:
        """log p(D) by importance sampling with q, its standard error, and how far it can be trusted."""
        remedy = "Approximate all weights; `log_evidence` is there for the chosen ones."
        if not self.is_proper:
            raise InputError(f"`evidence` must be asked of a density over all weights, got one of some. {remedy}")
        if self.posterior is None:
            raise InputError(
                "`evidence` must know the data, got an approximation without. Pass `load(path, posterior)`."
            )
        draws = self.sample(key, num_draws)
        assert draws.log_proposal is not None
        return importance_evidence(np.ravel(draws.log_density) - np.ravel(draws.log_proposal))

    def bare(self) -> Any:
        """The same density without what is known about its run, so that another run's compiles nothing anew."""
        return dataclasses.replace(self, estimate=None, facts=Facts())

    @classmethod
    def load(
        cls, path: str | os.PathLike, posterior: Posterior | None = None, *, network: Network | None = None
    ) -> Any:
        """One of this class that `save` wrote; with the posterior, draws know their log p(D, θ)."""
        loaded = load_approximation(path, posterior, network=network)
        came, remedy = type(loaded).__name__, "Use `load_approximation`, which reads every kind."
        require_type(isinstance(loaded, cls), f"`{path}` must hold a {cls.__name__}", came, remedy)
        return loaded

    def save(self, path: str | os.PathLike) -> None:
        """Write a folder that `load_approximation` reads; the data are not in it."""
        write_approximation(path, self)

    def _drawn(self, keys: Key[Array, " draw"]) -> Sampled:
        """A batch of draws."""
        return _sample(self.bare(), keys)

    def _batch_size(self, num_draws: int) -> int:
        like = jax.eval_shape(self.sample_position, jax.random.key(0))
        one = 8 * tree.num_bytes(like)
        if self.posterior is not None:
            x = jax.ShapeDtypeStruct((1, *self.posterior.x.shape[1:]), self.posterior.x.dtype)
            params = jax.eval_shape(self.header.model.place, like).parameters.network
            one += self.posterior.num_points * widest_bytes(self.header.model.network, params, x)
        fitting = max(1, _BATCH_BYTES // one)
        return min(2 ** (num_draws - 1).bit_length(), 2 ** (fitting.bit_length() - 1))

    def drawn(self, key: PRNGKey) -> Sampled:
        """One draw, with its densities."""
        position, log_proposal = self.sample_with_density(key)
        params = self.header.model.place(position).parameters
        target = self.posterior
        log_density = jnp.full_like(log_proposal, jnp.nan) if target is None else target.log_density(position)
        return Sampled(params, log_density, {}, log_proposal=log_proposal)


@eqx.filter_jit
def _sample(approximation: Approximation, keys: Key[Array, " draw"]) -> Sampled:
    return jax.vmap(approximation.drawn)(keys)
