"""What a stage is given, and the flows that it asks for: trained once, and kept in the folder of the problem."""

import dataclasses
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
from experiments.thesis import judging, populations
from experiments.thesis.settings import Configuration, Problem, configurations

import weightscape as ws
from weightscape.core import JsonLines
from weightscape.inference.point import RunSplit

SEEDS = (0, 1)
"""Of brief trainings that are made twice."""

ONE_STEP = {"num_revisions": 1, "num_products": 0, "kronecker": True}
"""A field that sees the data once in each velocity, with the step by Kronecker factors."""


class Stage(NamedTuple):
    """Where flows are, the problem, its population, and what networks are judged against."""

    folder: Path
    problem: Problem
    split: RunSplit
    against: judging.Known

    def judged(self, flow: ws.PopulationFlow) -> dict[str, Any]:
        """All figures of networks that a flow draws."""
        return judging.judged(flow.sample(jax.random.key(3), self.problem.num_generated), self.against)


def trained(folder: Path, problem: Problem, configuration: Configuration, train: ws.Draws) -> ws.PopulationFlow:
    """The flow of a configuration, from the folder where it is there."""
    shown = populations.shown(train, problem, configuration)
    method, store = configuration.method(problem), folder / "flows" / f"{configuration.name}-{len(train)}"
    kept = {"store": store, "resume": True, "progress": JsonLines(sys.stderr)}
    return method.run(jax.random.key(2), problem.posterior(), draws=shown, **kept)


def long_revised(stage: Stage) -> ws.PopulationFlow:
    """The long training of a field that sees the data."""
    return trained(stage.folder, stage.problem, configurations()["euclidean-revised-long"], stage.split.train)


def briefly_trained(
    stage: Stage, name: str, seed: int, changes: dict[str, Any], *, configuration: str = "euclidean-revised"
) -> ws.PopulationFlow:
    """A short training of a configuration whose field differs from the problem's by some changes."""
    method = configurations()[configuration].method(stage.problem)
    changed = dataclasses.replace(method, architecture=dataclasses.replace(method.architecture, **changes))
    kept = {"store": stage.folder / "flows" / f"{name}-{seed}", "resume": True, "progress": JsonLines(sys.stderr)}
    return changed.run(jax.random.key(seed), stage.problem.posterior(), draws=stage.split.train, **kept)
