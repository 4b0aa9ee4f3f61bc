"""Variational inference with a normalising flow: q is a standard normal sent through trained invertible layers.

    max over T of  ELBO = E_z[log p(D, T(z)) + log |det ∂T/∂z|] + H[z],      z ~ N(0, I),   q = law of T(z)

The family holds every Gaussian and bends where the posterior does. Its density is exact at every point, so what is
wrong with it can be measured and weighed away. KL(q ‖ p) punishes mass where the posterior has none and not the
reverse: from modes that lie apart it finds one, or joins some by thin bridges.

Reference: Rezende & Mohamed (2015), Variational inference with normalizing flows.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, registered
from weightscape.core.checks import require, require_count, require_positive
from weightscape.core.facts import Facts
from weightscape.core.numbers import number
from weightscape.draws import Header
from weightscape.inference.approximation import Approximation
from weightscape.inference.evidence import LogEvidence
from weightscape.inference.method import Circumstances, DensityMethod
from weightscape.inference.variational.coupling_flow import CouplingGuide, FlowSizes, coupling_layers, require_inverse
from weightscape.inference.variational.estimator import Reparameterised
from weightscape.inference.variational.flow_approximation import FlowApproximation
from weightscape.inference.variational.guide import Guide, Vector
from weightscape.inference.variational.kl import MonteCarlo
from weightscape.inference.variational.settings import bound, check_counts
from weightscape.inference.variational.train import Fit, Schedule, train_guide
from weightscape.posterior import Posterior


@registered("inference.NormalizingFlowVI")
class NormalizingFlowVI(DensityMethod):
    """A coupling flow trained on the evidence lower bound; a `FlowApproximation`.

    - `num_layers`: coupling layers, each of which moves half the coordinates.  `width`: hidden units of its network.
    - `num_steps`, `learning_rate`, `batch_size`, `initial_scale`, `kl_warmup`, `num_evidence_draws`: as in
      `MeanFieldVI`. Training starts as a normal around `init` with the standard deviation `initial_scale`.
    - `num_samples`: draws in each estimate of the gradient.
    """

    num_layers: int = eqx.field(static=True, default=8)
    width: int = eqx.field(static=True, default=64)
    num_steps: int = eqx.field(static=True, default=4000)
    learning_rate: Float[Array, ""] = eqx.field(default=0.01, converter=number)
    num_samples: int = eqx.field(static=True, default=10)
    batch_size: int | None = eqx.field(static=True, default=None)
    initial_scale: Float[Array, ""] = eqx.field(default=0.05, converter=number)
    kl_warmup: int = eqx.field(static=True, default=0)
    num_evidence_draws: int = eqx.field(static=True, default=1000)

    def __check_init__(self):
        self._schedule().check("NormalizingFlowVI")
        check_counts("NormalizingFlowVI", self.num_samples, self.batch_size, self.num_evidence_draws)
        require_count("`num_layers` of NormalizingFlowVI", self.num_layers, least=2)
        require_count("`width` of NormalizingFlowVI", self.width)
        require_positive("`initial_scale` of NormalizingFlowVI", self.initial_scale)

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Approximation:
        key_layers, key_trials, key_training = jax.random.split(key, 3)
        layout = Header.of(posterior).layout()
        asked = "NormalizingFlowVI must have at least 2 weights, as some are moved given the others"
        require(layout.size > 1, asked, layout.size, "Use MeanFieldVI.")
        elbo = bound(posterior, layout, MonteCarlo(), Reparameterised(), (self.num_samples, self.batch_size))
        guide_at = lambda vector: self._guide_at(key_layers, vector)

        def finish(guide: Guide, estimate: LogEvidence, facts: Facts) -> FlowApproximation:
            assert isinstance(guide, CouplingGuide)
            require_inverse(key_trials, guide)
            header = Header.of(posterior)
            return FlowApproximation(header, posterior, estimate, facts, guide, layout)

        fit = Fit(elbo, self._schedule(), guide_at, finish, self.num_evidence_draws)
        return train_guide(key_training, self, fit, around)

    def _guide_at(self, key: PRNGKey, vector: Vector) -> Guide:
        layers = coupling_layers(key, FlowSizes(vector.size, self.num_layers, self.width), vector.dtype)
        return CouplingGuide(vector, jnp.full_like(vector, jnp.log(self.initial_scale).astype(vector.dtype)), layers)

    def _schedule(self) -> Schedule:
        return Schedule(self.num_steps, self.learning_rate, self.kl_warmup)
