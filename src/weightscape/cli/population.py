"""`weightscape population`: many networks trained side by side, as a run that `weightscape flow` learns from."""

from typing import Annotated

import typer

from weightscape.cli.fit import Activation, Data, Hidden, Overwrite, PriorScale, Resume, Target, fit
from weightscape.cli.options import OutFolder, ProgressName, Quiet, Seed

Runs = Annotated[int, typer.Option(min=2, help="Training runs, each from a start of its own.")]
Iterates = Annotated[int, typer.Option(min=1, help="Networks of each run: one at its end, or several after it.")]
Every = Annotated[int, typer.Option(min=1, help="Steps before each iterate.")]
LastRate = Annotated[float, typer.Option(help="Learning rate of iterates, where there are several.")]
Steps = Annotated[int, typer.Option(min=1, help="Steps of training.")]
LearningRate = Annotated[float, typer.Option(help="Where the cosine schedule of training begins.")]
BatchSize = Annotated[int | None, typer.Option(min=1, help="Points in each gradient; all of few, some of many.")]


def population(  # noqa: PLR0913  the options of a command are its arguments
    source: Data,
    target: Target = None,
    runs: Runs = 100,
    iterates: Iterates = 1,
    every: Every = 20,
    last_rate: LastRate = 2e-3,
    steps: Steps = 2000,
    learning_rate: LearningRate = 0.02,
    batch_size: BatchSize = None,
    out: OutFolder = None,
    hidden: Hidden = "16",
    activation: Activation = "relu",
    prior_scale: PriorScale = 1.0,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    resume: Resume = False,
    progress: ProgressName = "bar",
    quiet: Quiet = False,
) -> None:
    """Train a population of networks, and write it as a run whose chains are training runs.

    `weightscape fit --method population` does the same with every option that `fit` has.

    Example: weightscape population breast_cancer --hidden 16,16 --runs 200 --out runs/cancer
    """
    rates = [f"every={every}", f"last_rate={last_rate}"] if iterates > 1 else []
    settings = [f"num_steps={steps}", f"learning_rate={learning_rate}", *rates]
    fit(
        source,
        target=target,
        method="population",
        out=out,
        hidden=hidden,
        activation=activation,
        prior_scale=prior_scale,
        chains=runs,
        draws=iterates,
        seed=seed,
        overwrite=overwrite,
        resume=resume,
        set_=[*settings, *([] if batch_size is None else [f"batch_size={batch_size}"])],
        progress=progress,
        quiet=quiet,
    )
