"""Mean-field variational inference: independent weights, trained to be close to the posterior.

    q(θ) = Π_i q_i(θ_i),      φ* = argmax ELBO(q),      ELBO(q) = E_q[log p(D | θ)] − KL(q ‖ p)

It minimises KL(q ‖ p(θ | D)), so it covers one mode and is too narrow where weights are correlated: for a Gaussian
posterior its mean is exact and its variances are 1 / (Σ⁻¹)_ii, never larger than Σ_ii.

References: Graves (2011), Practical variational inference for neural networks; Blundell, Cornebise, Kavukcuoglu &
Wierstra (2015), Weight uncertainty in neural networks.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, registered
from weightscape.core.checks import require, require_positive
from weightscape.core.facts import Facts
from weightscape.core.layout import Layout
from weightscape.core.numbers import number
from weightscape.draws import Header
from weightscape.inference.approximation import Approximation
from weightscape.inference.evidence import LogEvidence
from weightscape.inference.gaussian import Diagonal, Gaussian
from weightscape.inference.method import Circumstances, DensityMethod
from weightscape.inference.variational.estimator import Estimator, Reparameterised
from weightscape.inference.variational.families import Family, Normal
from weightscape.inference.variational.guide import Guide, Vector
from weightscape.inference.variational.kl import Divergence
from weightscape.inference.variational.local import LocalReparameterised
from weightscape.inference.variational.mean_field import MeanField, MeanFieldGuide
from weightscape.inference.variational.settings import bound, check_counts
from weightscape.inference.variational.train import Fit, Schedule, train_guide
from weightscape.posterior import Posterior


@registered("inference.MeanFieldVI")
class MeanFieldVI(DensityMethod):
    """Independent q for each coordinate of the position; a `Gaussian` with `Diagonal`, or a `MeanField`.

    - `num_steps`, `learning_rate`: n and η of the cosine schedule.
    - `num_samples`: draws in each estimate of the gradient; an even number comes in mirrored pairs, with less noise.
    - `batch_size`: points that each draw sees; None for all.
    - `estimator`: `Reparameterised()`, or with less noise on minibatches `Flipout()` or `LocalReparameterised()`.
    - `family`: the law of each weight, such as `families.StudentT(5.0)`.
    - `initial_scale`: s at the start, for every coordinate.
    - `kl`: `ClosedForm()` or `MonteCarlo()`. None takes Monte Carlo where all points see one draw, as noise then
      cancels near the optimum, and else the closed form where there is one.
    - `kl_warmup`: steps over which the divergence comes to count fully.
    - `num_evidence_draws`: draws for the bound's final value.
    """

    num_steps: int = eqx.field(static=True, default=4000)
    learning_rate: Float[Array, ""] = eqx.field(default=0.02, converter=number)
    num_samples: int = eqx.field(static=True, default=2)
    batch_size: int | None = eqx.field(static=True, default=None)
    estimator: Estimator = eqx.field(default_factory=Reparameterised)
    family: Family = eqx.field(default_factory=Normal)
    initial_scale: Float[Array, ""] = eqx.field(default=0.05, converter=number)
    kl: Divergence | None = None
    kl_warmup: int = eqx.field(static=True, default=0)
    num_evidence_draws: int = eqx.field(static=True, default=200)

    def __check_init__(self):
        self._schedule().check("MeanFieldVI")
        check_counts("MeanFieldVI", self.num_samples, self.batch_size, self.num_evidence_draws)
        require_positive("`initial_scale` of MeanFieldVI", self.initial_scale)
        fits = isinstance(self.family, Normal) or not isinstance(self.estimator, LocalReparameterised)
        asked = "`family` of MeanFieldVI with LocalReparameterised() must be Normal()"
        require(fits, asked, type(self.family).__name__, "Use `Flipout()`, which any symmetric family allows.")

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Approximation:
        layout = Header.of(posterior).layout()
        elbo = bound(posterior, layout, self.kl, self.estimator, (self.num_samples, self.batch_size))
        finish = lambda guide, estimate, facts: _finished(guide, posterior, layout, estimate, facts)
        fit = Fit(elbo, self._schedule(), self._guide_at, finish, self.num_evidence_draws)
        return train_guide(key, self, fit, around)

    def _guide_at(self, vector: Vector) -> Guide:
        log_scale = jnp.full_like(vector, jnp.log(self.initial_scale).astype(vector.dtype))
        return MeanFieldGuide(vector, log_scale, self.family)

    def _schedule(self) -> Schedule:
        return Schedule(self.num_steps, self.learning_rate, self.kl_warmup)


def _finished(
    guide: Guide, posterior: Posterior, layout: Layout, estimate: LogEvidence, facts: Facts
) -> Gaussian | MeanField:
    assert isinstance(guide, MeanFieldGuide)
    scale = jnp.exp(guide.log_scale)
    header = Header.of(posterior)
    known = (header, posterior, estimate, facts, guide.location)
    if isinstance(guide.family, Normal):
        return Gaussian(*known, Diagonal(scale), layout)
    return MeanField(*known, scale, guide.family, layout)
