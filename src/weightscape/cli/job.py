"""A job: a method on a posterior, and the run folder that it fills."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jax

import weightscape
from weightscape.cli.choose import Choice, MethodOptions, choose_method
from weightscape.cli.conduct import Conduct, ConductOptions, choose_conduct
from weightscape.cli.errors import Stopped
from weightscape.cli.run_folder import Run, clear, write_run
from weightscape.core import Progress
from weightscape.data import Dataset, TrainingRange
from weightscape.inference import Approximation, as_draws
from weightscape.inference.as_draws import NUM_DRAWS
from weightscape.posterior import Model, Posterior
from weightscape.report.describe import described

_DRAWS_KEY = 1_000_033
"""Folded into the run's key for draws from a density, so that they share no randomness with the method."""


class Job(NamedTuple):
    """What is to be done: the data, the posterior, the method, how it is conducted, the run's record, and how many
    draws to take where the method ends in a density.
    """

    dataset: Dataset
    posterior: Posterior
    choice: Choice
    conduct: Conduct
    run: Run
    num_draws: int | None


def prepare_job(
    dataset: Dataset, model: Model, options: MethodOptions, conduct: ConductOptions, origin: tuple[str, int]
) -> Job:
    """The job of a method on a data set; `origin` is the name of the source, and the seed."""
    posterior = model.condition(dataset.train)
    choice = choose_method(posterior, options)
    run = _run(dataset, *origin, choice)
    return Job(dataset, posterior, choice, choose_conduct(conduct, choice.method), run, options.draws)


def run_job(job: Job, folder: Path, progress: Progress, *, resume: bool, continues: bool) -> None:
    """Make the draws; the settings are on disk before the first, and those of a resumed run once it is known to fit."""
    if not continues:
        clear(folder)
        write_run(folder, job.run, job.dataset)
    key, conduct = jax.random.key(job.run.seed), job.conduct._asdict()
    with keeping(folder):
        result = job.choice.method.run(key, job.posterior, store=folder, progress=progress, resume=resume, **conduct)
        if isinstance(result, Approximation):
            as_draws(jax.random.fold_in(key, _DRAWS_KEY), result, job.num_draws or NUM_DRAWS).save(folder)
    if continues:
        write_run(folder, job.run, job.dataset)


def _run(dataset: Dataset, source: str, seed: int, choice: Choice) -> Run:
    return Run(
        name=dataset.name,
        source=source,
        task=dataset.task,
        target=dataset.target,
        inputs=dataset.inputs,
        classes=dataset.classes,
        schema=dataset.schema,
        training_range=TrainingRange.fit(dataset.train.x, dataset.inputs),
        seed=seed,
        settings={"method": described(choice.method), "why": choice.why, "weightscape": weightscape.__version__},
    )


@contextlib.contextmanager
def keeping(folder: Path) -> Iterator[None]:
    """Say what an interruption has kept, and how to go on."""
    try:
        yield
    except KeyboardInterrupt as error:
        onward = "repeat the command with `--resume` to go on"
        if any(folder.glob("draws-*.safetensors")):
            kept = f"The draws so far are kept in `{folder}`: see `weightscape report {folder}`, or {onward}."
            raise Stopped(f"Stopped. {kept}") from error
        raise Stopped(f"Stopped before the first draws of `{folder}`; {onward}.") from error
