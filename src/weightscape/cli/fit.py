"""`weightscape fit`: from data to a run folder with draws, scores and a report."""

import time
from pathlib import Path
from typing import Annotated

import typer

from weightscape.cli.choose import MethodOptions, ModelOptions, choose_model
from weightscape.cli.conduct import ConductOptions
from weightscape.cli.finish import Finished, finish_run
from weightscape.cli.job import prepare_job, run_job
from weightscape.cli.options import OutFolder, ProgressName, Quiet, Seed
from weightscape.cli.run_folder import require_free
from weightscape.cli.screen import Screen
from weightscape.cli.source import Request, load_source
from weightscape.core import Deadline, Progress
from weightscape.core.checks import require_positive

_FEW_SECONDS = 20.0
_RESERVED_SHARE = 0.3
"""The part of `--minutes` that predictions and the report may take, up to `_FEW_SECONDS`."""

Data = Annotated[str, typer.Argument(metavar="DATA", help="A CSV file, or a name that `weightscape data` lists.")]
Target = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column to predict; needed for a CSV file.")]
Task = Annotated[str | None, typer.Option(help="regression or classification; guessed from the target otherwise.")]
Ignore = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column to leave out; may be repeated.")]
MethodName = Annotated[str | None, typer.Option("--method", help="hmc, nuts, sghmc, map, …; chosen otherwise.")]
Hidden = Annotated[str, typer.Option(help="Units of each hidden layer, such as 16 or 32,32.")]
Activation = Annotated[str, typer.Option(help="tanh, relu, …")]
PriorScale = Annotated[float, typer.Option(help="Standard deviation of the normal prior over weights.")]
Noise = Annotated[str | None, typer.Option(help="Noise in the target's units, or `inferred` (the default).")]
Heteroscedastic = Annotated[bool, typer.Option("--heteroscedastic", help="Noise that depends on the inputs.")]
Chains = Annotated[int | None, typer.Option(min=1, help="Chains, or members of an ensemble.")]
NumDraws = Annotated[int | None, typer.Option("--draws", min=1, help="Draws of each chain, or from a density.")]
TestFraction = Annotated[float, typer.Option(help="Share of the rows set aside for testing.")]
Minutes = Annotated[float | None, typer.Option(help="Stop after about so many minutes, report included.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a run that is in the folder.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder, or begin one.")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the method.")]
StartName = Annotated[str, typer.Option("--start", help="Where chains start: network, prior, map or ensemble.")]
RestartName = Annotated[str | None, typer.Option("--restart", help="Start lost chains again: nearby or prior.")]
Strict = Annotated[bool, typer.Option("--strict", help="Fail where a chain does not move or is not finite.")]
KeepAll = Annotated[bool, typer.Option("--keep-all", help="Keep chains that do not move or are not finite.")]


def fit(  # noqa: PLR0913  the options of a command are its arguments
    source: Data,
    target: Target = None,
    task: Task = None,
    ignore: Ignore = None,
    method: MethodName = None,
    out: OutFolder = None,
    hidden: Hidden = "16",
    activation: Activation = "tanh",
    prior_scale: PriorScale = 1.0,
    noise: Noise = None,
    heteroscedastic: Heteroscedastic = False,
    chains: Chains = None,
    draws: NumDraws = None,
    test_fraction: TestFraction = 0.2,
    minutes: Minutes = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    resume: Resume = False,
    set_: Set = None,
    start: StartName = "network",
    restart: RestartName = None,
    strict: Strict = False,
    keep_all: KeepAll = False,
    progress: ProgressName = "bar",
    quiet: Quiet = False,
) -> None:
    """Fit a Bayesian neural network to a CSV file or a known data set, and write a run folder.

    Example: weightscape fit houses.csv --target price --out runs/houses
    """
    began, screen = time.monotonic(), Screen(quiet, progress)
    bound = _bounded(screen.progress(), minutes, began)
    folder = out or Path("runs") / Path(source).stem
    continues = require_free(folder, overwrite=overwrite, resume=resume)
    dataset = load_source(Request(source, target, task, tuple(ignore or ()), test_fraction, seed))
    model = choose_model(dataset, ModelOptions(hidden, activation, prior_scale, noise, heteroscedastic))
    options = MethodOptions(method, chains, draws, minutes, tuple(set_ or ()))
    conduct = ConductOptions(start, restart, strict, keep_all)
    job = prepare_job(dataset, model, options, conduct, (Path(source).name, seed))
    screen.say(f"{dataset}\nMethod: {job.choice.why}")
    run_job(job, folder, bound, resume=resume, continues=continues)
    _show(finish_run(folder, job.run, folder), screen, began)


def _show(finished: Finished, screen: Screen, began: float) -> None:
    screen.show(finished.table)
    screen.say(f"{finished.num_draws}.")
    screen.say(f"Chains: {finished.health}.")
    screen.say(f"Took {time.monotonic() - began:.0f} seconds. The report:")
    screen.path(finished.page)


def _bounded(progress: Progress, minutes: float | None, began: float) -> Progress:
    """The progress with what is left of the time, after a part is set aside for predictions and the report."""
    if minutes is None:
        return progress
    require_positive("`--minutes`", minutes)
    seconds = 60 * minutes
    spent = time.monotonic() - began
    return Deadline(max(0.0, seconds - min(_FEW_SECONDS, _RESERVED_SHARE * seconds) - spent), progress)
