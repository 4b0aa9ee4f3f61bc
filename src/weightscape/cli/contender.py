"""Contenders of a comparison: a method or a baseline, run into a folder of its own or taken from it.

Memory is the bytes of the arrays that a prediction needs: the weights of all draws, the density where predictions are
made by that, the rows and factors of a Gaussian process, the nodes of trees. It is what stays once the run is over,
not what the run took on its way. Time is wall-clock seconds until the draws are on disk, compilation included.
"""

import abc
import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from weightscape.cli.errors import Stopped
from weightscape.cli.forecast import forecast
from weightscape.cli.job import Job, run_job
from weightscape.cli.measured import Identity, Measured, write_measured
from weightscape.cli.run_folder import RUN, read_draws
from weightscape.core import Progress, encode, tree
from weightscape.core.files import map_arrays, write_arrays
from weightscape.data import Dataset
from weightscape.draws import Draws, Header, encode_header
from weightscape.evaluate import Baseline
from weightscape.evaluate.baseline import table_predictive
from weightscape.inference import LINEARISED
from weightscape.inference.gradient_count import num_gradients
from weightscape.inference.method import data_digest, run_identity
from weightscape.predictive import Predictive
from weightscape.report import rhat_note
from weightscape.report.chain_checks import function_rhat
from weightscape.report.numbers import counted

PREDICTIONS = "predictions.safetensors"


class Places(NamedTuple):
    """Inputs at which all contenders predict: the test rows, and those of a picture where there is one."""

    test: np.ndarray
    picture: np.ndarray | None


class Result(NamedTuple):
    """What a contender came to.

    - `test`, `picture`: its predictions at the places.  `draws`: where it has some.
    - `rhat`: the worst R̂ of its chains in function space, where it has chains.
    - `seconds`, `num_gradients`, `num_bytes`: its cost.  `notes`: what a reader should know.
    """

    test: Predictive
    picture: Predictive | None
    draws: Draws | None
    seconds: float
    num_gradients: float | None
    num_bytes: int
    notes: tuple[str, ...] = ()
    rhat: float | None = None


class Contender(abc.ABC):
    """Something that can be compared."""

    @abc.abstractmethod
    def identity(self) -> Identity:
        """Which run it is."""

    @abc.abstractmethod
    def run(self, folder: Path, progress: Progress, *, resume: bool) -> dict[str, Any]:
        """Fill the folder, and return facts to be kept beside."""

    @abc.abstractmethod
    def result(self, folder: Path, measured: Measured) -> Result:
        """What the folder of a finished run holds."""


@dataclasses.dataclass(frozen=True)
class MethodContender(Contender):
    """A method; its folder is a run folder as `weightscape fit` writes it."""

    job: Job
    places: Places

    def identity(self) -> Identity:
        seed, method, posterior = self.job.run.seed, self.job.choice.method, self.job.posterior
        more = {"num_draws": getattr(method, "num_draws", None), "model": encode_header(Header.of(posterior)).tree}
        return {"seed": seed, **more, **run_identity(jax.random.key(seed), method, posterior)}

    def run(self, folder: Path, progress: Progress, *, resume: bool) -> dict[str, Any]:
        run_job(self.job, folder, progress, resume=resume, continues=resume and (folder / RUN).exists())
        return {}

    def result(self, folder: Path, measured: Measured) -> Result:
        draws = read_draws(folder)
        at, _ = forecast(folder, draws)
        count = num_gradients(self.job.choice.method, self.job.posterior.num_points)
        rhat = function_rhat(draws, self.job.dataset.test)
        cost = measured.seconds, count, _num_bytes(folder, draws)
        return Result(*_everywhere(at, self.places), draws, *cost, _notes(draws, rhat), rhat)


@dataclasses.dataclass(frozen=True)
class BaselineContender(Contender):
    """A baseline; its folder holds its predictions at the places, since what made them cannot be stored."""

    baseline: Baseline
    dataset: Dataset
    seed: int
    places: Places

    def identity(self) -> Identity:
        arrays = (self.dataset.train.x, self.dataset.train.y, *(place for place in self.places if place is not None))
        return {"settings": encode(self.baseline).tree, "seed": self.seed, "data": data_digest(arrays)}

    def run(self, folder: Path, progress: Progress, *, resume: bool) -> dict[str, Any]:
        classes = self.dataset.classes
        progress.start("fitting", 1)
        fitted = self.baseline.fit(self.dataset.train, None if classes is None else len(classes), seed=self.seed)
        progress.finish()
        write_arrays(folder / PREDICTIONS, {name: fitted.table(x) for name, x in _named(self.places).items()})
        return {"num_bytes": fitted.num_bytes, "notes": list(fitted.notes)}

    def result(self, folder: Path, measured: Measured) -> Result:
        task, scaling = self.dataset.task, self.dataset.train.scaling
        tables = map_arrays(folder / PREDICTIONS)
        made = {name: table_predictive(np.asarray(table), task, scaling) for name, table in tables.items()}
        facts = measured.facts
        notes = tuple(facts["notes"])
        return Result(made["test"], made.get("picture"), None, measured.seconds, None, facts["num_bytes"], notes)


def entered(contender: Contender, folder: Path, measured: Measured | None, progress: Progress) -> Result:
    """The result of a contender, which is run or goes on where it is not finished."""
    if measured is None or not measured.is_finished:
        measured = _finish(contender, folder, measured, progress)
    return contender.result(folder, measured)


def _finish(contender: Contender, folder: Path, before: Measured | None, progress: Progress) -> Measured:
    began, spent = time.monotonic(), 0.0 if before is None else before.seconds
    ended = lambda is_finished, facts: Measured(is_finished, spent + time.monotonic() - began, facts)
    try:
        measured = ended(True, contender.run(folder, progress, resume=before is not None))
    except BaseException as error:
        if not isinstance(error, Exception) or isinstance(error, Stopped):
            write_measured(folder, contender.identity(), ended(False, {}))
        raise
    write_measured(folder, contender.identity(), measured)
    return measured


def _everywhere(at: Callable[[Any], Predictive], places: Places) -> tuple[Predictive, Predictive | None]:
    return at(places.test), None if places.picture is None else at(places.picture)


def _named(places: Places) -> dict[str, np.ndarray]:
    return {name: x for name, x in places._asdict().items() if x is not None}


def _notes(draws: Draws, rhat: float | None) -> tuple[str, ...]:
    left_out = len(draws.health.left_out)
    told = (f"{counted(left_out, 'chain')} left out" if left_out else "", rhat_note(rhat))
    return tuple(note for note in told if note)


def _num_bytes(folder: Path, draws: Draws) -> int:
    if draws.facts.get(LINEARISED, False):
        stored = [map_arrays(file) for file in folder.glob("approximation-*.safetensors")]
        return sum(array.nbytes for arrays in stored for array in arrays.values())
    return tree.num_bytes(draws.params)
