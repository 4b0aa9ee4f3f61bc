"""The evidence lower bound of a guide, in nats.

    ELBO(q) = E_q[log p(D | θ)] − KL(q ‖ p) = log p(D) − KL(q ‖ p(θ | D)) ≤ log p(D)

Its likelihood is a sum over N points. B of them, drawn uniformly, give an unbiased estimate when their sum is scaled by
N/B. Draws z and 2μ − z, mirrored at the mean of a symmetric q, have the same law, and what is odd in their noise
cancels: for a Gaussian posterior all of the noise in the gradient of μ. For a tempered posterior the bound is on the
logarithm of ∫ p(D | θ)^β p(θ)^γ dθ.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from weightscape.core import PRNGKey, Scalar
from weightscape.core.checks import require
from weightscape.core.layout import Layout
from weightscape.inference.evidence import LogEvidence
from weightscape.inference.variational.estimator import Estimator
from weightscape.inference.variational.guide import Guide, MomentGuide
from weightscape.inference.variational.kl import Divergence, Drawn
from weightscape.posterior import Posterior


class Elbo(eqx.Module):
    """Unbiased estimates of the bound and, by differentiation, of its gradient.

    - `posterior`: the target, over positions that `layout` flattens.
    - `kl`, `estimator`: how the two terms are estimated.
    - `num_samples`: draws that are averaged, in mirrored pairs where their number is even and q is symmetric.
    - `batch_size`: B, the points that each draw sees; None for all.
    """

    posterior: Posterior
    layout: Layout
    kl: Divergence
    estimator: Estimator
    num_samples: int = eqx.field(static=True, default=1)
    batch_size: int | None = eqx.field(static=True, default=None)

    def check(self, guide: Guide) -> None:
        """Raise where the bound of such a guide cannot be estimated so."""
        self.kl.check(self.posterior, guide)
        self.estimator.facts(self.posterior, self.layout)

    def __call__(self, key: PRNGKey, guide: Guide, kl_weight: Scalar) -> Scalar:
        """The estimate, with the divergence counted `kl_weight` times: 1 for the bound itself."""
        key_draws, key_points = jax.random.split(key)
        keys = jax.random.split(key_points, self.num_samples)
        one = lambda key, drawn: self._one(key, drawn, guide, kl_weight)
        return jnp.mean(jax.vmap(one)(keys, self._draws(key_draws, guide)))

    def _draws(self, key: PRNGKey, guide: Guide) -> Drawn:
        """Draws on a leading axis; an even number of a symmetric guide comes in mirrored pairs."""
        mirrors = isinstance(guide, MomentGuide) and self.num_samples % 2 == 0
        keys = jax.random.split(key, self.num_samples // 2 if mirrors else self.num_samples)
        drawn = Drawn(*jax.vmap(guide.sample_and_log_density)(keys))
        if not (mirrors and isinstance(guide, MomentGuide)):
            return drawn
        mirrored = Drawn(2 * guide.location[None, :] - drawn.vector, drawn.log_density)
        return jax.tree.map(lambda *pair: jnp.concatenate(pair), drawn, mirrored)

    def _one(self, key: PRNGKey, drawn: Drawn, guide: Guide, kl_weight: Scalar) -> Scalar:
        key_rows, key_noise = jax.random.split(key)
        rows, posterior = self._rows(key_rows), self.posterior
        pointwise = self.estimator.pointwise(key_noise, guide, drawn.vector, rows, self.layout)
        log_likelihood = posterior.num_points / rows.num_points * jnp.sum(pointwise)
        divergence = self.kl.estimate(posterior, self.layout, guide, drawn)
        return posterior.likelihood_power * log_likelihood - kl_weight * divergence

    def _rows(self, key: PRNGKey) -> Posterior:
        """The posterior given a few of the points, or all."""
        if self.batch_size is None:
            return self.posterior
        indices = jax.random.randint(key, (self.batch_size,), 0, self.posterior.num_points)
        return dataclasses.replace(self.posterior, x=self.posterior.x[indices], y=self.posterior.y[indices])


def evaluate(key: PRNGKey, posterior: Posterior, layout: Layout, guide: Guide, num_draws: int) -> LogEvidence:
    """The bound on all data from independent draws, with its standard error: the mean of log p(D, z) − log q(z)."""
    arrays, rest = eqx.partition(guide, eqx.is_array)
    log_ratios = np.asarray(_log_ratios(jax.random.split(key, num_draws), posterior, layout, arrays, rest), np.float64)
    bad = int(np.sum(~np.isfinite(log_ratios)))
    remedy = "Lower `learning_rate` or `initial_scale`, or check the scales of prior and likelihood."
    asked = "The bound must be finite after training"
    require(bad == 0, asked, f"non-finite values in {bad} of {num_draws} draws", remedy)
    error = log_ratios.std(ddof=1) / np.sqrt(num_draws)
    return LogEvidence(float(log_ratios.mean()), "lower bound", float(error))


@eqx.filter_jit
def _log_ratios(keys: Key[Array, " draw"], posterior: Posterior, layout: Layout, arrays: Guide, rest: Guide) -> Array:
    guide = eqx.combine(arrays, rest)

    def one(key):
        vector, log_q = guide.sample_and_log_density(key)
        return posterior.log_density(layout.unflatten(vector)) - log_q

    return jax.lax.map(one, keys)  # one after the other: a draw sees all data
