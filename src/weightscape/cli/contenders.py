"""Which contenders a comparison has, and running them one after the other."""

import dataclasses
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from weightscape.cli.choose import MethodOptions, parse_setting
from weightscape.cli.conduct import ConductOptions
from weightscape.cli.contender import BaselineContender, Contender, MethodContender, Places, Result, entered
from weightscape.cli.errors import Stopped, one_line
from weightscape.cli.job import prepare_job
from weightscape.cli.measured import Measured, read_measured
from weightscape.cli.method_settings import settings_by_method
from weightscape.cli.run_folder import MEASURED, clear
from weightscape.cli.screen import Screen
from weightscape.core import InputError, InputTypeError
from weightscape.core.checks import require_known
from weightscape.core.files import write_text
from weightscape.data import Dataset
from weightscape.evaluate import Baseline, BoostedTrees, GaussianProcess
from weightscape.evaluate.evidence_progress import NamedPhases
from weightscape.posterior import Model
from weightscape.report import line, plane
from weightscape.report.numbers import duration

BASELINES: dict[str, type[Baseline]] = {"gp": GaussianProcess, "trees": BoostedTrees}
"""Baselines by name."""

TRACE = "failure.txt"


class Asked(NamedTuple):
    """What the user asked for: methods and baselines by name, settings as texts METHOD.NAME=VALUE, source and seed."""

    methods: tuple[str, ...]
    baselines: tuple[str, ...]
    settings: tuple[str, ...]
    source: str
    seed: int


class Outcome(NamedTuple):
    """Results of the contenders that came to one, and the reasons of those that failed."""

    results: dict[str, Result]
    failures: dict[str, str]


def choose_contenders(dataset: Dataset, model: Model, asked: Asked) -> dict[str, Contender]:
    """All contenders by name, on the same rows and with the same seed."""
    for name in asked.baselines:
        require_known("A baseline", name, BASELINES)
    mine = settings_by_method(asked.settings, (*asked.methods, *asked.baselines))
    places = Places(np.asarray(dataset.test.x), _picture_inputs(dataset))
    origin = asked.source, asked.seed

    def method(name: str) -> Contender:
        options = MethodOptions(name, settings=mine[name])
        return MethodContender(prepare_job(dataset, model, options, ConductOptions(), origin), places)

    def baseline(name: str) -> Contender:
        return BaselineContender(_baseline(BASELINES[name], mine[name]), dataset, asked.seed, places)

    return {name: method(name) for name in asked.methods} | {name: baseline(name) for name in asked.baselines}


def run_contenders(
    contenders: Mapping[str, Contender], folder: Path, screen: Screen, *, overwrite: bool, resume: bool
) -> Outcome:
    """Run what is not finished yet, one line each; what fails is noted, and the others go on."""
    # All are looked at before the first is run: one that must be refused should not come after an hour.
    known = {
        name: read_measured(folder / name, contender.identity(), overwrite=overwrite, resume=resume)
        for name, contender in contenders.items()
    }
    outcome = Outcome({}, {})
    for i, (name, contender) in enumerate(contenders.items(), 1):
        phases = NamedPhases(f"{i} of {len(contenders)}, {name}", screen.progress())
        began = time.monotonic()
        try:
            outcome.results[name] = entered(contender, folder / name, known[name], phases)
        except (KeyboardInterrupt, Stopped) as error:
            raise Stopped(_stopped(folder, name)) from error
        except Exception as error:  # whatever it is, the others are not lost
            outcome.failures[name] = _failed(folder / name, error)
        screen.say(f"  {_line(name, outcome, known[name], time.monotonic() - began)}")
    return outcome


def _line(name: str, outcome: Outcome, known: Measured | None, seconds: float) -> str:
    if name in outcome.failures:
        return f"{name} failed after {duration(seconds)}: {outcome.failures[name]}"
    reused = known is not None and known.is_finished
    took = duration(outcome.results[name].seconds)
    notes = "".join(f"; {note}" for note in outcome.results[name].notes)
    return f"{name}: {took}{', from the earlier run' if reused else ''}{notes}"


def _stopped(folder: Path, name: str) -> str:
    kept = f"Finished runs and the draws so far are kept in `{folder}`"
    return f"Stopped during {name}. {kept}; repeat the command with `--resume` to go on."


def _failed(folder: Path, error: Exception) -> str:
    """The reason in one line; a fault of the program leaves its trace.

    What a run left that failed from its beginning is removed; one that had ended before is kept, whatever came after.
    """
    if not (folder / MEASURED).exists():
        clear(folder)
    if isinstance(error, (InputError, InputTypeError)):
        return one_line(error)
    write_text(folder / TRACE, "".join(traceback.format_exception(error)))
    return f"{type(error).__name__}: {one_line(error)} (see `{folder / TRACE}`)"


def _baseline(kind: type[Baseline], settings: tuple[str, ...]) -> Baseline:
    known = {field.name for field in dataclasses.fields(kind)}
    return kind(**dict(parse_setting(text, kind, known) for text in settings))


def _picture_inputs(dataset: Dataset) -> np.ndarray | None:
    """Inputs of the picture that can be drawn: a line of one input for numbers, a plane of two for classes."""
    x = np.asarray(dataset.train.x)
    if dataset.task == "regression" and x.shape[1:] == (1,):
        return line(x)
    return plane(x).points if dataset.task == "classification" and x.shape[1:] == (2,) else None
