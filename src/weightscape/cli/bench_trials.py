"""One trial of a benchmark: a method on a split of a data set, and the file that keeps its scores.

    trials/yacht-03-hmc.json        what was asked, what was scored

A file is whole or absent and is written as soon as the scores are there, so a benchmark that is killed loses the trial
that it was at. What was asked stands in each file: scores of other settings are never taken for these.
"""

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax

import weightscape
from weightscape.cli.conduct import ConductOptions, choose_conduct
from weightscape.cli.errors import one_line
from weightscape.cli.finish import finite, plain_scores
from weightscape.core import InputError, Progress
from weightscape.core.checks import require
from weightscape.core.config import encode
from weightscape.core.files import read_json, write_json
from weightscape.data import Dataset
from weightscape.evaluate import scores
from weightscape.evaluate.splits import SplitScores
from weightscape.inference import Method
from weightscape.inference.method import settings
from weightscape.posterior import Model
from weightscape.predictive import predict_result

TRIALS = "trials"


class Trial(NamedTuple):
    """A method on a split of a data set.

    - `data`, `split`, `name`: which one it is.
    - `model`, `method`, `start`: what is run, and where its chains start; a name as in `--start`.
    - `double`: in double precision.
    """

    data: str
    split: int
    name: str
    model: Model
    method: Method
    start: str
    double: bool
    seed: int

    @property
    def label(self) -> str:
        """For messages."""
        return f"{self.data}, split {self.split}, {self.name}"

    def asked(self) -> dict[str, Any]:
        """All that its scores depend on, as plain JSON."""
        parts = {name: getattr(self.model, name) for name in ("network", "likelihood", "prior")}
        model = {name: encode(part).tree for name, part in parts.items()}
        return {**model, **settings(self.method), "start": self.start, "double": self.double, "seed": self.seed}


def trial_file(folder: Path, trial: Trial) -> Path:
    """Where a trial is kept."""
    return folder / TRIALS / f"{trial.data}-{trial.split:02d}-{trial.name}.json"


def kept_scores(folder: Path, trial: Trial) -> SplitScores | None:
    """The scores of a trial that is kept, or None; raises where they are those of other settings."""
    path = trial_file(folder, trial)
    if not path.exists():
        return None
    content = read_json(path)
    try:
        asked, failure, seconds = content["asked"], content["failure"], content["seconds"]
        found = {name: math.nan if value is None else float(value) for name, value in content["scores"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"`{path}` must hold a trial, got {error!r}. It is damaged; delete it.") from error
    _require_same(path, asked, trial.asked())
    return SplitScores(trial.data, trial.split, trial.name, found, seconds, failure)


def run_trial(folder: Path, trial: Trial, load: Callable[[], Dataset], progress: Progress) -> SplitScores:
    """Run a trial and keep its scores; what the method refuses is kept as its failure.

    - `load`: loads the split, in the precision of the trial.
    """
    began, failure, found = time.monotonic(), None, {}
    with jax.enable_x64(True) if trial.double else contextlib.nullcontext():
        dataset = load()
        try:
            found = _scores(trial, dataset, progress)
        except InputError as error:
            failure = one_line(error)
    row = SplitScores(trial.data, trial.split, trial.name, found, time.monotonic() - began, failure)
    kept = {"scores": finite(found), "seconds": row.seconds, "failure": failure, "asked": trial.asked()}
    names = {"data": trial.data, "split": trial.split, "method": trial.name, "version": weightscape.__version__}
    write_json(trial_file(folder, trial), {**names, **kept})
    return row


def _scores(trial: Trial, dataset: Dataset, progress: Progress) -> dict[str, float]:
    # One key for all methods and data sets, so that neither depends on which others are asked for.
    key_run, key_predict = jax.random.split(jax.random.fold_in(jax.random.key(trial.seed), trial.split))
    conduct = choose_conduct(ConductOptions(trial.start), trial.method)._asdict()
    result = trial.method.run(key_run, trial.model.condition(dataset.train), progress=progress, **conduct)
    return plain_scores(scores(predict_result(key_predict, result, dataset.test.x), dataset.test.y))


def _require_same(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    old, new = dict(_leaves("", before)), dict(_leaves("", now))
    changed = next((name for name in {**old, **new} if old.get(name) != new.get(name)), None)
    remedy = "Repeat the command with the settings of before, or choose another `--out`."
    asked = f"{changed} of `{path}` must be {old.get(str(changed))} as before"
    require(changed is None, asked, new.get(str(changed)), remedy)


def _leaves(name: str, value: Any) -> list[tuple[str, Any]]:
    """The ends of nested JSON by dotted name; the words that only say what kind of thing follows are left out."""
    if isinstance(value, Mapping):
        inner = lambda key: name if key in ("fields", "values") else f"{name}.{key}".strip(".")
        return [leaf for key, each in value.items() for leaf in _leaves(inner(key), each)]
    lone = isinstance(value, list) and len(value) == 1
    return [(name, value[0] if lone else value)]
