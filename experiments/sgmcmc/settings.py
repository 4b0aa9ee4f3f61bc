"""The posterior of `sgmcmc_table`, its reference chains, and the methods that are held against them.

Every weight has the prior N(0, 0.15²). With standardised pixels that makes units of the first layer of size
0.15 · √784 = 4.2 and logits of size 2.4. A quarter of a period through it, (π/2) · 0.15, is about a hundred leapfrog
steps of HMC, so chains forget their start soon. All chains start at draws from the prior.
"""

import dataclasses

import numpy as np

import weightscape as ws
from weightscape.data.images import mnist, notmnist
from weightscape.inference.method import Method


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is computed, and how much of it.

    - `data`: "mnist", whose foreign inputs are letters (notMNIST), or "digits", whose foreign inputs are noise.
    - `steps`: of an epoch of minibatches of `batch_size`.  `warmup`, `sampling`: epochs of a chain with minibatches.
    - `cycle`: epochs of a cycle.  `training`: epochs of a network, `guide`: of mean-field VI.
    """

    data: str
    num_train: int | None
    hidden: tuple[int, ...]
    reference: ws.HMC
    batch_size: int
    steps: int
    warmup: int
    sampling: int
    cycle: int
    training: int
    guide: int
    num_chains: int
    num_draws: int
    num_members: int


FULL = Settings(
    "mnist", 10_000, (50, 50),
    ws.HMC(32, 100, num_warmup=100, thin=5, num_leapfrog=100, step_size=0.002, mass=ws.UnitMass()),
    batch_size=100, steps=100, warmup=200, sampling=800, cycle=50, training=50, guide=300,
    num_chains=8, num_draws=64, num_members=50,
)  # fmt: skip
TINY = Settings(
    "digits", None, (8,),
    ws.HMC(4, 10, num_warmup=20, num_leapfrog=64, step_size=0.01, mass=ws.UnitMass()),
    batch_size=100, steps=14, warmup=2, sampling=8, cycle=2, training=8, guide=16,
    num_chains=2, num_draws=8, num_members=4,
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Problem:
    """A posterior, the test part, and inputs of another kind."""

    posterior: ws.Posterior
    test: ws.Batch
    foreign: np.ndarray


def problem(settings: Settings) -> Problem:
    """Images in rows, ReLU units, the prior N(0, 0.15²)."""
    if settings.data == "mnist":
        data = mnist(num_train=settings.num_train, flatten=True)
        foreign = np.asarray(notmnist(flatten=True).x)
    else:
        data = ws.data.load(settings.data)
        foreign = np.random.default_rng(0).uniform(0, 16, (200, data.train.x.shape[1]))
    network = ws.networks.MLP(hidden=settings.hidden, activation="relu")
    model = ws.Model(network, ws.likelihoods.Categorical(10), ws.priors.Normal(0.15))
    return Problem(model.condition(data.train), data.test, foreign)


def methods(settings: Settings) -> dict[str, Method]:
    """By the name of their row, in its order."""
    epoch, batch_size = settings.steps, settings.batch_size
    training = {"num_steps": settings.training * epoch, "learning_rate": 1e-3, "batch_size": batch_size}
    course = {"num_chains": settings.num_chains, "num_draws": settings.num_draws, "batch_size": batch_size}
    course |= {"num_warmup": settings.warmup * epoch}
    even = course | {"thin": settings.sampling * epoch // settings.num_draws}
    num_cycles = settings.sampling // settings.cycle
    per_cycle = settings.num_draws // num_cycles
    in_cycles = course | {"thin": settings.cycle * epoch // (4 * per_cycle)}
    cycles = {"cycle_length": settings.cycle * epoch, "draws_per_cycle": per_cycle}
    return {
        "MAP, one network": ws.MAP(**training),
        "deep ensemble": ws.DeepEnsemble(settings.num_members, **training),
        "mean-field VI": ws.MeanFieldVI(
            num_steps=settings.guide * epoch, learning_rate=3e-3, num_samples=1, batch_size=batch_size,
            estimator=ws.LocalReparameterised(), initial_scale=0.02,
        ),
        "SGLD": ws.SGLD(**even, step_size=1e-5),
        "SGHMC": ws.SGHMC(**even, step_size=1e-3, friction=20.0),
        "cyclical SGHMC": ws.SGHMC(**in_cycles, step_size=ws.Cyclical(4e-3, **cycles), friction=20.0),
        "cyclical SGHMC, preconditioned": ws.SGHMC(
            **in_cycles, step_size=ws.Cyclical(4e-4, **cycles), friction=400.0, preconditioner=ws.RMSprop()
        ),
    }  # fmt: skip
