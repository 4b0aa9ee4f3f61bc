"""The two problems of the thesis, how their populations and flows are trained, and all configurations."""

import dataclasses
import itertools
from typing import NamedTuple

import numpy as np

import weightscape as ws
from weightscape.data.images import mnist
from weightscape.flow import (
    Aligned,
    Chained,
    Coupling,
    Equivariant,
    Euclidean,
    Geometric,
    Independent,
    Normalized,
    OptimalTransport,
    Plain,
)
from weightscape.metanet import Sizes

GEOMETRIES = {"euclidean": Euclidean, "normalized": Normalized, "geometric": Geometric}


@dataclasses.dataclass(frozen=True)
class Problem:
    """A data set, a ReLU network, its population, and the flows that learn from it.

    - `flow`: the training; geometry, field and coupling are those of a configuration.
    - `plain`: the size of fields that know no symmetry.
    - `num_generated`: networks that are drawn to be judged.  `noise`: of noisy copies, in deviations of each leaf.
    - `num_rows`: how many images, for mnist.
    """

    dataset: str
    hidden: tuple[int, ...]
    population: ws.Population
    flow: ws.PopulationMatching
    plain: Sizes
    num_generated: int = 512
    noise: float = 0.1
    num_rows: int | None = None

    def data(self) -> ws.Dataset:
        """Rows for training the networks, and for judging them."""
        return ws.data.load(self.dataset) if self.num_rows is None else mnist(num_train=self.num_rows, flatten=True)

    def posterior(self) -> ws.Posterior:
        """What the networks are trained on; weights decay by the prior N(0, 1)."""
        train = self.data().train
        likelihood = ws.likelihoods.Categorical(num_classes=int(np.max(np.asarray(train.y))) + 1)
        network = ws.networks.MLP(hidden=self.hidden, activation="relu")
        return ws.Model(network, likelihood, ws.priors.Normal(1.0)).condition(train)


class Configuration(NamedTuple):
    """A geometry by name, whether the field is equivariant, networks aligned, and pairs those of optimal transport.

    Aligned means what can help: a field that commutes with permutations sees each target moved towards its own source;
    one that does not is trained on networks that were all re-based onto one of them.
    """

    geometry: str
    equivariant: bool
    aligned: bool
    transport: bool

    @property
    def name(self) -> str:
        """In words that fit a file name."""
        choices = (("aligned", self.aligned), ("transport", self.transport))
        return "-".join(
            [self.geometry, "equivariant" if self.equivariant else "plain", *(n for n, on in choices if on)]
        )

    def method(self, problem: Problem) -> ws.PopulationMatching:
        """The training that it stands for."""
        field = problem.flow.architecture if self.equivariant else Plain(problem.plain)
        parts = {"geometry": GEOMETRIES[self.geometry](), "architecture": field, "coupling": self._coupling()}
        return dataclasses.replace(problem.flow, **parts)

    def _coupling(self) -> Coupling:
        pairs = OptimalTransport() if self.transport else Independent()
        return Chained(pairs, Aligned()) if self.aligned and self.equivariant else pairs


def configurations() -> dict[str, Configuration]:
    """All of them, by name."""
    choices = itertools.product(GEOMETRIES, (True, False), (False, True), (False, True))
    return {each.name: each for each in itertools.starmap(Configuration, choices)}


PROBLEMS = {
    "cancer": Problem(
        "breast_cancer",
        (16, 16),
        ws.Population(num_runs=2500, num_steps=1000, learning_rate=0.01, batch_size=64),
        ws.PopulationMatching(
            num_steps=10_000,
            learning_rate=5e-4,
            architecture=Equivariant(Sizes(width=64, edge_width=32, num_blocks=3, num_heads=4), guided=False),
        ),
        Sizes(width=512, num_blocks=4),
    ),
    "mnist": Problem(
        "mnist",
        (10,),
        ws.Population(num_runs=2500, num_steps=3000, learning_rate=5e-3, batch_size=128),
        ws.PopulationMatching(
            num_steps=10_000,
            learning_rate=5e-4,
            architecture=Equivariant(Sizes(width=256, edge_width=32, num_blocks=3, num_heads=4), guided=False),
        ),
        Sizes(width=1024, num_blocks=4),
        num_rows=20_000,
    ),
    "small": Problem(
        "breast_cancer",
        (4, 4),
        ws.Population(num_runs=60, num_steps=150, learning_rate=0.02),
        ws.PopulationMatching(
            num_steps=100,
            batch_size=16,
            learning_rate=5e-3,
            average=0.95,
            architecture=Equivariant(Sizes(width=8, edge_width=4, num_blocks=1, num_heads=2), guided=False),
        ),
        Sizes(width=16, num_blocks=1),
        num_generated=32,
    ),
}
