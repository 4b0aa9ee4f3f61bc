"""A flow after a sampler: chains first, then a flow that learns from their draws, as one method.

    draws = sampler.run(key_sampler, posterior),      flow = FlowMatching(...).run(key_flow, posterior, draws=draws)

So a flow stands beside methods that need no draws, in comparisons and on the command line. A mode that the sampler
misses, and no symmetry leads to, is missing in the flow and in its evidence: where that matters let a ladder make the
draws, `FlowAfter(ParallelTempering())`.
"""

import math

import equinox as eqx
import jax

from weightscape.core import Deadline, PRNGKey, Progress, registered
from weightscape.flow.architecture import Equivariant
from weightscape.flow.flow_matching import FlowMatching
from weightscape.flow.transport import FixedSteps
from weightscape.inference import HMC, Approximation, Method, as_draws
from weightscape.inference.approximation_run import stage
from weightscape.inference.method import Circumstances, DensityMethod
from weightscape.metanet import Sizes
from weightscape.posterior import Posterior

_SHARE_OF_CHAINS = 0.4
"""Of the time that a run may take; the flow has the rest."""

_NUM_SOLVER_STEPS = 10
"""With half as many the solver's error, not the training, decides the spread of the log weights."""


def small_flow(num_steps: int = 3000, width: int = 16, num_blocks: int = 1) -> FlowMatching:
    """Flow matching that two cores finish in minutes, for networks of some hundred weights.

    - `width`, `num_blocks`: of its metanet.

    J is not measured on the way: that would take as long as the training.
    """
    return FlowMatching(
        num_steps=num_steps,
        batch_size=64,
        learning_rate=3e-3,
        average=0.995,
        num_leapfrog=32,
        architecture=Equivariant(small_sizes(width, num_blocks)),
        solver=FixedSteps(_NUM_SOLVER_STEPS),
        gap_every=0,
    )


def small_sizes(width: int, num_blocks: int) -> Sizes:
    """The sizes of a small metanet, from two of them."""
    return Sizes(width=width, edge_width=max(1, width // 4), num_blocks=num_blocks, num_heads=math.gcd(width, 4))


@registered("flow.FlowAfter")
class FlowAfter(DensityMethod):
    """A sampler, and flow matching on its draws.

    - `sampler`: what makes the draws; `init`, `strict`, `keep_all` and `restart` of a run are meant for it.
    - `flow`: what learns from them.
    """

    sampler: Method = eqx.field(default_factory=HMC)
    flow: FlowMatching = eqx.field(default_factory=small_flow)

    @property
    def num_chains(self) -> int:
        """Of the sampler: how many starts a run needs."""
        return getattr(self.sampler, "num_chains", 1)

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Approximation:
        key_sampler, key_draws, key_flow = jax.random.split(key, 3)
        first = around._replace(draws=None, store=stage(around.store, "draws"), progress=_first_part(around.progress))
        draws = as_draws(key_draws, self.sampler.approximate(key_sampler, posterior, first))
        return self.flow.approximate(key_flow, posterior, around._replace(draws=draws, init=None))


def _first_part(progress: Progress) -> Progress:
    left = progress.seconds_left()
    return Deadline(_SHARE_OF_CHAINS * left, progress) if math.isfinite(left) else progress
