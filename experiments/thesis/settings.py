"""The problems, how their populations and flows are trained, and all configurations."""

import dataclasses
import itertools
from typing import NamedTuple

import numpy as np

import weightscape as ws
from weightscape.data.images import mnist
from weightscape.flow import (
    Aligned,
    Architecture,
    Chained,
    Coupling,
    Equivariant,
    Euclidean,
    Geometric,
    Independent,
    Normalized,
    OptimalTransport,
    Plain,
    Revised,
)
from weightscape.metanet import Sizes

GEOMETRIES = {"euclidean": Euclidean(), "normalized": Normalized(), "geometric": Geometric()}
WITH_SHIFTS = {
    "normalized-with-shifts": Normalized(with_shifts=True),
    "geometric-with-shifts": Geometric(with_shifts=True),
}
EQUIVARIANT, REVISED, PLAIN = "equivariant", "revised", "plain"
_SIDE = 28


@dataclasses.dataclass(frozen=True)
class Fields:
    """How large the fields of a problem are, by kind.

    - `rows`: of the data that revised ones see.  `num_revisions`: how often they do.
    - `num_products`: with the curvature, for the Newton step that they are shown each time.
    - `kronecker`: whether that step has Kronecker factors instead.
    - `halved`: blocks in bfloat16, for accelerators.
    """

    equivariant: Sizes
    revised: Sizes
    plain: Sizes
    rows: int = 1024
    num_revisions: int = 3
    num_products: int = 8
    kronecker: bool = False
    halved: bool = False

    def architecture(self, kind: str) -> Architecture:
        """The field of a kind."""
        if kind == EQUIVARIANT:
            return Equivariant(self.equivariant, guided=False, halved=self.halved)
        if kind == PLAIN:
            return Plain(self.plain)
        num_products = 0 if self.kronecker else self.num_products
        looks = {"num_revisions": self.num_revisions, "num_products": num_products, "kronecker": self.kronecker}
        return Revised(self.revised, self.rows, halved=self.halved, **looks)


@dataclasses.dataclass(frozen=True)
class Problem:
    """A data set, a ReLU network, its population, and the flows that learn from it.

    - `prior`: weights decay by the prior N(0, prior²).
    - `short`, `long`: the training of configurations, and of those that are long; each with its fields.
    - `num_generated`: networks that are drawn to be judged.
    - `noises`: of noisy copies, in deviations of each leaf.  `shares`: of the other network in a blend of two.
    - `num_rows`: how many images, for mnist.  `moved`: whether networks train on those moved by a pixel, too.
    """

    dataset: str
    hidden: tuple[int, ...]
    prior: float
    population: ws.Population
    short: tuple[ws.PopulationMatching, Fields]
    long: tuple[ws.PopulationMatching, Fields]
    num_generated: int = 512
    noises: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8)
    shares: tuple[float, ...] = (0.05, 0.1, 0.2, 0.3, 0.5)
    num_rows: int | None = None
    moved: bool = False

    def data(self) -> ws.Dataset:
        """Rows for training the networks, and for judging them."""
        return ws.data.load(self.dataset) if self.num_rows is None else mnist(num_train=self.num_rows, flatten=True)

    def posterior(self) -> ws.Posterior:
        """What flows are trained on, and look at: the rows as they are."""
        return posterior_on(self.data().train, self.hidden, self.prior)

    def training_posterior(self) -> ws.Posterior:
        """What the networks are trained on."""
        train = self.data().train
        return posterior_on(_with_moved(train) if self.moved else train, self.hidden, self.prior)


def posterior_on(train: ws.Batch, hidden: tuple[int, ...], prior: float) -> ws.Posterior:
    """ReLU networks that tell the classes of some rows apart."""
    likelihood = ws.likelihoods.Categorical(num_classes=int(np.max(np.asarray(train.y))) + 1)
    network = ws.networks.MLP(hidden=hidden, activation="relu")
    return ws.Model(network, likelihood, ws.priors.Normal(prior)).condition(train)


def _with_moved(images: ws.Batch) -> ws.Batch:
    """Flat images, and the same moved by a pixel to each side, up and down."""
    x = np.asarray(images.x)
    square = x.reshape(len(x), _SIDE, _SIDE)
    ways = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0))
    copies = [np.roll(square, way, axis=(1, 2)).reshape(x.shape) for way in ways]
    return ws.Batch(np.concatenate(copies), np.tile(np.asarray(images.y), len(ways)), images.scaling)


class Configuration(NamedTuple):
    """A geometry and a kind of field by name, whether networks are aligned, pairs optimal, and training long.

    Aligned means what can help: a field that commutes with permutations sees each target moved towards its own source;
    one that does not is trained on networks that were all re-based onto one of them.
    """

    geometry: str
    field: str
    aligned: bool = False
    transport: bool = False
    is_long: bool = False

    @property
    def name(self) -> str:
        """In words that fit a file name."""
        choices = (("aligned", self.aligned), ("transport", self.transport), ("long", self.is_long))
        return "-".join([self.geometry, self.field, *(n for n, on in choices if on)])

    def method(self, problem: Problem) -> ws.PopulationMatching:
        """The training that it stands for."""
        flow, fields = problem.long if self.is_long else problem.short
        parts = {"geometry": (GEOMETRIES | WITH_SHIFTS)[self.geometry], "architecture": fields.architecture(self.field)}
        return dataclasses.replace(flow, coupling=self._coupling(), **parts)

    def _coupling(self) -> Coupling:
        pairs = OptimalTransport() if self.transport else Independent()
        return Chained(pairs, Aligned()) if self.aligned and self.field != PLAIN else pairs


def configurations() -> dict[str, Configuration]:
    """All of them, by name: the thesis's 24, fields that see the data, long trainings, and shifts on spheres."""
    choices = itertools.product(GEOMETRIES, (EQUIVARIANT, PLAIN), (False, True), (False, True))
    thesis = itertools.starmap(Configuration, choices)
    revised = (Configuration(geometry, REVISED) for geometry in GEOMETRIES)
    kinds = itertools.product(GEOMETRIES, (EQUIVARIANT, REVISED))
    long = (Configuration(geometry, field, is_long=True) for geometry, field in kinds)
    choices = itertools.product(WITH_SHIFTS, (EQUIVARIANT,), (False, True), (False, True))
    with_shifts = (*itertools.starmap(Configuration, choices), *(Configuration(each, REVISED) for each in WITH_SHIFTS))
    return {each.name: each for each in (*thesis, *revised, *long, *with_shifts)}


def _sizes(width: int, num_blocks: int) -> Sizes:
    return Sizes(width=width, edge_width=32, num_blocks=num_blocks, num_heads=8)


_FEW = Sizes(width=8, edge_width=4, num_blocks=1, num_heads=2)
_SMALL = Fields(_FEW, _FEW, Sizes(width=16, num_blocks=1), rows=64)
_TINY = ws.PopulationMatching(num_steps=100, batch_size=16, learning_rate=5e-3, average=0.95)

_MODEST = Fields(
    _sizes(64, 2), _sizes(64, 2), Sizes(width=256, num_blocks=2), rows=4096, num_revisions=2, kronecker=True
)
_WIDE = (_sizes(256, 3), _sizes(192, 3), Sizes(width=1024, num_blocks=4))
_DEEP = Fields(*_WIDE, rows=4096, num_revisions=1, kronecker=True, halved=True)

PROBLEMS = {
    "cancer": Problem(
        "breast_cancer",
        (16, 16),
        1.0,
        ws.Population(num_runs=2500, num_steps=1000, learning_rate=0.01, batch_size=64),
        (
            ws.PopulationMatching(num_steps=1500, batch_size=64, learning_rate=2e-3, average=0.995),
            Fields(_sizes(48, 2), _sizes(48, 2), Sizes(width=256, num_blocks=3)),
        ),
        (
            ws.PopulationMatching(num_steps=5000, batch_size=64, learning_rate=1e-3),
            Fields(_sizes(64, 3), _sizes(64, 3), Sizes(width=256, num_blocks=3)),
        ),
        num_generated=256,
    ),
    "mnist": Problem(
        "mnist",
        (10,),
        0.1,
        ws.Population(num_runs=12_500, num_steps=4000, learning_rate=0.02, batch_size=128),
        (
            ws.PopulationMatching(num_steps=1500, batch_size=256, learning_rate=1e-3, average=0.998),
            Fields(*_WIDE, rows=8192, halved=True),
        ),
        (
            ws.PopulationMatching(num_steps=7000, batch_size=512, learning_rate=1e-3),
            Fields(_sizes(512, 4), _sizes(384, 4), Sizes(width=1024, num_blocks=4), rows=8192, halved=True),
        ),
        num_rows=60_000,
    ),
    "modest": Problem(
        "mnist",
        (10,),
        0.1,
        ws.Population(num_runs=600, num_steps=2000, learning_rate=0.02, batch_size=128),
        (
            ws.PopulationMatching(num_steps=1500, batch_size=64, learning_rate=2e-3, average=0.995),
            Fields(_sizes(64, 2), _sizes(64, 2), Sizes(width=256, num_blocks=2), rows=256),
        ),
        (
            ws.PopulationMatching(num_steps=2500, batch_size=64, learning_rate=2e-3, average=0.995),
            Fields(_sizes(64, 2), _sizes(64, 2), Sizes(width=256, num_blocks=2), rows=256),
        ),
        num_generated=64,
        noises=(0.1,),
        shares=(0.5,),
        num_rows=60_000,
    ),
    "digits": Problem(
        "digits",
        (10,),
        0.3,
        ws.Population(num_runs=2000, num_steps=1500, learning_rate=0.02, batch_size=64),
        (
            ws.PopulationMatching(num_steps=1500, batch_size=64, learning_rate=2e-3, average=0.995),
            Fields(_sizes(64, 2), _sizes(48, 2), Sizes(width=256, num_blocks=2), rows=512),
        ),
        (
            ws.PopulationMatching(num_steps=5000, batch_size=64, learning_rate=1e-3),
            Fields(_sizes(64, 2), _sizes(48, 2), Sizes(width=256, num_blocks=2), rows=512),
        ),
        num_generated=256,
    ),
    "diverse": Problem(
        "mnist",
        (10,),
        0.3,
        ws.Population(num_runs=15_000, num_steps=30_000, learning_rate=0.005, batch_size=128, share_batches=True),
        (
            ws.PopulationMatching(num_steps=3000, batch_size=256, learning_rate=1e-3, average=0.998),
            Fields(*_WIDE, rows=8192, halved=True),
        ),
        (
            ws.PopulationMatching(num_steps=3500, batch_size=512, learning_rate=1e-3),
            Fields(_sizes(512, 4), _sizes(384, 4), Sizes(width=1024, num_blocks=4), rows=8192, halved=True),
        ),
        num_rows=60_000,
        moved=True,
    ),
    "deep": Problem(
        "mnist",
        (32, 32),
        0.2,
        ws.Population(num_runs=6000, num_steps=10_000, learning_rate=0.01, batch_size=128, share_batches=True),
        (
            ws.PopulationMatching(num_steps=2000, batch_size=128, learning_rate=1e-3, average=0.998),
            _DEEP,
        ),
        (
            ws.PopulationMatching(num_steps=8000, batch_size=128, learning_rate=1e-3),
            dataclasses.replace(_DEEP, revised=_sizes(256, 4)),
        ),
        num_generated=256,
        num_rows=60_000,
        moved=True,
    ),
    "modest-deep": Problem(
        "mnist",
        (32, 32),
        0.2,
        ws.Population(num_runs=1200, num_steps=3000, learning_rate=0.01, batch_size=128, share_batches=True),
        (
            ws.PopulationMatching(num_steps=400, batch_size=24, learning_rate=2e-3, average=0.98),
            dataclasses.replace(_MODEST, num_revisions=1),
        ),
        (ws.PopulationMatching(num_steps=1100, batch_size=24, learning_rate=2e-3, average=0.99), _MODEST),
        num_generated=32,
        noises=(0.1, 0.2, 0.3, 0.4),
        shares=(0.1, 0.2, 0.3),
        num_rows=60_000,
    ),
    "small": Problem(
        "breast_cancer",
        (4, 4),
        1.0,
        ws.Population(num_runs=60, num_steps=150, learning_rate=0.02),
        (_TINY, _SMALL),
        (_TINY, _SMALL),
        num_generated=32,
        noises=(0.1,),
        shares=(0.5,),
    ),
}
