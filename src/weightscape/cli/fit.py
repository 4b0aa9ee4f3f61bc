"""`weightscape fit`: from data to a run folder with draws, scores and a report."""

import time
from pathlib import Path
from typing import Annotated

import jax
import typer

import weightscape
from weightscape.cli.choose import Choice, MethodOptions, ModelOptions, choose_method, choose_model
from weightscape.cli.errors import Stopped
from weightscape.cli.finish import finish_run
from weightscape.cli.options import OutFolder, Quiet, Seed
from weightscape.cli.run_folder import Run, clear, require_free, write_run
from weightscape.cli.screen import Screen
from weightscape.cli.source import Request, load_source
from weightscape.core import Deadline, Progress
from weightscape.core.checks import require_positive
from weightscape.data import Dataset, TrainingRange
from weightscape.posterior import Posterior
from weightscape.report.describe import described

_FEW_SECONDS = 20.0
_RESERVED_SHARE = 0.3
"""The part of `--minutes` that predictions and the report may take, up to `_FEW_SECONDS`."""

Data = Annotated[str, typer.Argument(metavar="DATA", help="A CSV file, or a name that `weightscape data` lists.")]
Target = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column to predict; needed for a CSV file.")]
Task = Annotated[str | None, typer.Option(help="regression or classification; guessed from the target otherwise.")]
Ignore = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column to leave out; may be repeated.")]
MethodName = Annotated[str | None, typer.Option("--method", help="hmc, ensemble or map; chosen otherwise.")]
Hidden = Annotated[str, typer.Option(help="Units of each hidden layer, such as 16 or 32,32.")]
Activation = Annotated[str, typer.Option(help="tanh, relu, …")]
PriorScale = Annotated[float, typer.Option(help="Standard deviation of the normal prior over weights.")]
Noise = Annotated[str | None, typer.Option(help="Noise in the target's units, or `inferred` (the default).")]
Heteroscedastic = Annotated[bool, typer.Option("--heteroscedastic", help="Noise that depends on the inputs.")]
Chains = Annotated[int | None, typer.Option(min=1, help="Chains, or members of an ensemble.")]
NumDraws = Annotated[int | None, typer.Option("--draws", min=1, help="Draws of each chain.")]
TestFraction = Annotated[float, typer.Option(help="Share of the rows set aside for testing.")]
Minutes = Annotated[float | None, typer.Option(help="Stop after about so many minutes, report included.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a run that is in the folder.")]


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
    quiet: Quiet = False,
) -> None:
    """Fit a Bayesian neural network to a CSV file or a known data set, and write a run folder.

    Example: weightscape fit houses.csv --target price --out runs/houses
    """
    began, screen = time.monotonic(), Screen(quiet)
    if minutes is not None:
        require_positive("`--minutes`", minutes)
    folder = out or Path("runs") / Path(source).stem
    require_free(folder, overwrite=overwrite)
    dataset = load_source(Request(source, target, task, tuple(ignore or ()), test_fraction, seed))
    model = choose_model(dataset, ModelOptions(hidden, activation, prior_scale, noise, heteroscedastic))
    posterior = model.condition(dataset.train)
    choice = choose_method(posterior, MethodOptions(method, chains, draws, minutes))
    screen.say(str(dataset))
    screen.say(f"Method: {choice.why}")
    clear(folder)
    write_run(folder, _run(dataset, Path(source).name, seed, choice), dataset)
    _sample(folder, choice, posterior, seed, _bounded(screen.progress(), minutes, began))
    finished = finish_run(folder, _run(dataset, Path(source).name, seed, choice), folder)
    screen.show(finished.table)
    screen.say(f"{finished.num_draws}.")
    screen.say(f"Took {time.monotonic() - began:.0f} seconds. The report:")
    screen.path(finished.page)


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


def _sample(folder: Path, choice: Choice, posterior: Posterior, seed: int, progress: Progress) -> None:
    try:
        choice.method.run(jax.random.key(seed), posterior, store=folder, progress=progress)
    except KeyboardInterrupt as error:
        if (folder / "draws.json").exists():
            raise Stopped(
                f"Stopped. The draws so far are kept in `{folder}`: see `weightscape report {folder}`."
            ) from error
        raise Stopped(f"Stopped before the first draws; `{folder}` holds only the settings and the data.") from error


def _bounded(progress: Progress, minutes: float | None, began: float) -> Progress:
    """The progress with what is left of the time, after a part is set aside for predictions and the report."""
    if minutes is None:
        return progress
    seconds = 60 * minutes
    spent = time.monotonic() - began
    return Deadline(max(0.0, seconds - min(_FEW_SECONDS, _RESERVED_SHARE * seconds) - spent), progress)
