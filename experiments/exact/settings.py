"""The posteriors of `exact_posterior`, how their references are sampled, and the ideas that are compared."""

import dataclasses

import numpy as np

import weightscape as ws
from weightscape.data.images import mnist
from weightscape.flow import (
    Aligned,
    Equivariant,
    FixedSteps,
    Landing,
    LogitNormalTimes,
    OfTarget,
    OfVelocity,
    Straight,
)
from weightscape.metanet import Sizes


@dataclasses.dataclass(frozen=True)
class Case:
    """A posterior, the chains that are its reference, and the flow that learns from them.

    - `num_weighed`, `num_particles`: draws that are weighed, and that are annealed.  `num_moves`: transitions of HMC.
    - `num_path_steps`: of the diffusion of a pull.  `landing`: how its last part is gone, in the stages that land.
    - `num_rows`: how many images, for mnist.
    """

    dataset: str
    hidden: tuple[int, ...]
    reference: ws.HMC
    ladder: ws.ParallelTempering | None
    flow: ws.FlowMatching
    num_weighed: int
    num_particles: int
    num_moves: int
    num_path_steps: int = 512
    landing: Landing = dataclasses.field(default_factory=lambda: Landing(time=0.75, num_levels=256))
    num_rows: int | None = None

    def data(self) -> ws.Dataset:
        if self.num_rows is None:
            return ws.data.load(self.dataset)
        return mnist(num_train=self.num_rows, flatten=True)

    def posterior(self) -> ws.Posterior:
        train = self.data().train
        likelihood = ws.likelihoods.Categorical(num_classes=int(np.max(np.asarray(train.y))) + 1)
        network = ws.networks.MLP(hidden=self.hidden, activation="tanh")
        return ws.Model(network, likelihood, ws.priors.Normal(scale=1.0)).condition(train)


def _flow(num_steps: int, **others) -> ws.FlowMatching:
    return ws.FlowMatching(num_steps=num_steps, gap_every=0, **others)


CASES = {
    "small": Case(
        "iris",
        (3,),
        ws.HMC(num_chains=16, num_draws=40, num_warmup=100, num_leapfrog=16),
        None,
        ws.FlowMatching(
            num_steps=60,
            batch_size=32,
            num_leapfrog=4,
            architecture=Equivariant(Sizes(width=8, edge_width=4, num_blocks=1, num_heads=2)),
            solver=FixedSteps(3),
            gap_every=0,
        ),
        num_weighed=64,
        num_particles=64,
        num_moves=2,
        num_path_steps=8,
        landing=Landing(num_levels=4, num_leapfrog=4),
    ),
    "iris": Case(
        "iris",
        (16,),
        ws.HMC(num_chains=2048, num_draws=64, num_warmup=400, num_leapfrog=64, thin=5),
        ws.ParallelTempering(num_chains=64, num_draws=400, num_warmup=300, num_replicas=16),
        _flow(10_000, batch_size=512, largest_norm=10.0, num_leapfrog=64),
        num_weighed=2048,
        num_particles=512,
        num_moves=10,
        num_path_steps=1024,
    ),
    "breast_cancer": Case(
        "breast_cancer",
        (16, 16),
        ws.HMC(num_chains=2048, num_draws=64, num_warmup=400, num_leapfrog=64, thin=5),
        ws.ParallelTempering(num_chains=32, num_draws=300, num_warmup=300, num_replicas=24),
        _flow(15_000, batch_size=512, largest_norm=10.0, num_leapfrog=64),
        num_weighed=2048,
        num_particles=256,
        num_moves=10,
        num_path_steps=1024,
    ),
    "mnist": Case(
        "mnist",
        (10,),
        ws.HMC(num_chains=64, num_draws=40, num_warmup=600, num_leapfrog=128, thin=2, step_size=0.01),
        None,
        _flow(3000, batch_size=64, largest_norm=10.0, architecture=Equivariant(guiding_rows=1000, num_leapfrog=8)),
        num_weighed=64,
        num_particles=0,
        num_moves=10,
        num_path_steps=256,
        landing=Landing(num_levels=256, num_leapfrog=16, step_size=0.05),
        num_rows=10_000,
    ),
}

_LARGE = Sizes(width=192, edge_width=48, num_blocks=6)

IDEAS = {
    "pull, guided, swung": {},
    "pull, guided, swung, late times fewer": {"times": LogitNormalTimes()},
    "pull, guided without turns, swung": {"architecture": Equivariant(num_leapfrog=0)},
    "pull, guided": {"num_leapfrog": 0},
    "pull, swung": {"architecture": Equivariant(guided=False)},
    "velocity, guided": {"prediction": OfVelocity()},
    "velocity": {"prediction": OfVelocity(), "architecture": Equivariant(guided=False)},
    "velocity, straight": {
        "prediction": OfVelocity(),
        "architecture": Equivariant(guided=False),
        "path": Straight(),
    },
    "velocity, straight, aligned": {
        "prediction": OfVelocity(),
        "architecture": Equivariant(guided=False),
        "path": Straight(),
        "coupling": Aligned(),
    },
    "target": {"prediction": OfTarget(), "architecture": Equivariant(guided=False)},
    "pull, guided, swung, straight": {"path": Straight()},
    "pull, guided, swung, larger": {"architecture": Equivariant(_LARGE)},
}
"""Changes to a case's flow, by name."""
