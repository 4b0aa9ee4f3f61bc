"""`weightscape flow`: learn to draw networks from the draws of a run, measure the flow, and correct it."""

import time
from pathlib import Path
from typing import Annotated, NamedTuple

import jax
import typer

from weightscape.cli.flow_correction import CORRECTIONS, corrected_by
from weightscape.cli.flow_folder import CORRECTED, FLOW, begin_flow, clear_findings, keeping
from weightscape.cli.flow_measure import measure_flow
from weightscape.cli.flow_page import FlowPage, flow_report, flow_result, laplace_evidences
from weightscape.cli.flow_population import (
    EUCLIDEAN,
    NUM_REVISIONS,
    Wanted,
    flow_over_population,
    population_method,
)
from weightscape.cli.opened_run import OpenedRun, open_run
from weightscape.cli.options import OutFolder, ProgressName, Quiet, RunFolder, Seed
from weightscape.cli.result_folder import result_folder, write_result
from weightscape.cli.screen import Screen
from weightscape.core import PRNGKey
from weightscape.core.checks import require, require_known
from weightscape.flow import Flow, FlowMatching, small_flow, small_sizes
from weightscape.posterior import Posterior
from weightscape.report.numbers import duration

POPULATION = "Population"
_LEAVE = "Leave it out."
_FEWEST_DRAWS = 20

Correct = Annotated[str | None, typer.Option("--correct", help="Bring draws to the posterior: weights, hmc or smc.")]
NumDraws = Annotated[int, typer.Option("--draws", min=10, help="Networks that are drawn from the flow.")]
NumSteps = Annotated[int, typer.Option("--steps", min=1, help="Steps of training.")]
Width = Annotated[int, typer.Option("--width", min=1, help="Channels of the flow's metanet.")]
Blocks = Annotated[int, typer.Option("--blocks", min=1, help="Blocks of the flow's metanet.")]
GeometryName = Annotated[
    str | None,
    typer.Option(
        "--geometry",
        show_default=EUCLIDEAN,
        help="Of a flow over a population: euclidean, or normalized or geometric, each with or without -with-shifts.",
    ),
]
Given = Annotated[
    str | None, typer.Option("--given", help="Of a flow over a population: loss, to draw networks of a loss.")
]
Revisions = Annotated[
    int | None,
    typer.Option(
        "--revisions",
        min=0,
        show_default=str(NUM_REVISIONS),
        help="Of a flow over a population: how often the field looks at the data; 0 for never.",
    ),
]
Forgetting = Annotated[
    float | None,
    typer.Option(
        "--forgetting",
        help="Of a euclidean flow over a population: how much a step forgets of where it came from; 0 for no noise.",
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the training in the folder, or begin one.")]


def flow(  # noqa: PLR0913  the options of a command are its arguments
    run: RunFolder,
    correct: Correct = None,
    draws: NumDraws = 1000,
    steps: NumSteps = 3000,
    width: Width = 16,
    blocks: Blocks = 1,
    geometry: GeometryName = None,
    given: Given = None,
    revisions: Revisions = None,
    forgetting: Forgetting = None,
    out: OutFolder = None,
    seed: Seed = 0,
    resume: Resume = False,
    progress: ProgressName = "bar",
    quiet: Quiet = False,
) -> None:
    """Train a flow on a run's draws: fresh networks with their density, log p(D), and how far to trust both.

    On a population it learns to draw networks like its own, judged by those of held-out runs.

    Example: weightscape flow runs/houses --correct hmc
    """
    if correct is not None:
        require_known("`--correct`", correct, CORRECTIONS)
    screen, folder, opened = Screen(quiet, progress), result_folder(out, run, FLOW), open_run(run)
    if opened.draws.facts.get("method") == POPULATION:
        require(correct is None, "`--correct` is for posteriors, and a population must have none", correct, _LEAVE)
        chosen = EUCLIDEAN if geometry is None else geometry
        often = NUM_REVISIONS if revisions is None else revisions
        method = population_method(chosen, steps, small_sizes(width, blocks), given, often, forgetting)
        flow_over_population(opened, method, Wanted(folder, draws, seed, resume), screen)
        return
    foreign = {"geometry": geometry, "given": given, "revisions": revisions, "forgetting": forgetting}
    for name, asked in foreign.items():
        require(asked is None, f"`--{name}` is for populations, and a posterior must have none", asked, _LEAVE)
    _require_chains(opened)
    _flow_to_posterior(opened, Asked(small_flow(steps, width, blocks), correct, draws, seed, resume), folder, screen)


class Asked(NamedTuple):
    """What is to be done: training, correction by name, how many draws, the seed, whether training goes on."""

    method: FlowMatching
    correction: str | None
    num_draws: int
    seed: int
    resume: bool


def _flow_to_posterior(opened: OpenedRun, asked: Asked, folder: Path, screen: Screen) -> None:
    began, told = time.monotonic(), {"run": str(opened.folder)}
    page = make_flow(jax.random.key(asked.seed), opened, asked, folder, screen)
    report = flow_report(page, {**told, "seed": str(asked.seed), "time": duration(time.monotonic() - began)})
    path = write_result(folder, "flow", {**told, "seed": asked.seed, **flow_result(page)}, report)
    for table in report.tables:
        screen.show(table)
    screen.say(f"{report.summary}\nTook {duration(time.monotonic() - began)}. The report:")
    screen.path(path)
    if page.corrected is not None and page.corrected.refusal is not None:
        raise page.corrected.refusal


def make_flow(key: PRNGKey, opened: OpenedRun, asked: Asked, folder: Path, screen: Screen) -> FlowPage:
    """Train, measure, correct; the flow and the corrected draws are kept in the folder."""
    key_train, key_measure, key_correct, key_laplace, key_picture = jax.random.split(key, 5)
    posterior, progress = opened.posterior(), screen.progress()
    screen.say(f"{opened.dataset}\nTraining a flow on {len(opened.draws)} draws.")
    trained = _trained(key_train, posterior, opened, asked, folder, screen)
    screen.say("Drawing networks with their densities.")
    measured = measure_flow(key_measure, trained, opened.draws, asked.num_draws)
    corrected = None
    if asked.correction is not None:
        screen.say(f"Correcting by {asked.correction}.")
        corrected = corrected_by(key_correct, asked.correction, measured, posterior, progress)
        if corrected.draws is not None:
            corrected.draws.save(folder / CORRECTED)
    evidences = laplace_evidences(key_laplace, posterior)
    return FlowPage(key_picture, opened, measured, corrected, evidences)


def _trained(key: PRNGKey, posterior: Posterior, opened: OpenedRun, asked: Asked, folder: Path, screen: Screen) -> Flow:
    store = begin_flow(folder, resume=asked.resume)
    with keeping(store):
        result = asked.method.run(
            key, posterior, draws=opened.draws, store=store, progress=screen.progress(), resume=asked.resume
        )
    assert isinstance(result, Flow)
    clear_findings(folder)
    return result


def _require_chains(opened: OpenedRun) -> None:
    draws, method = opened.draws, opened.draws.facts.get("method", "another method")
    asked = "A run that a flow learns from must hold draws of chains"
    remedy = "Fit with `--method hmc`, say, and take that run."
    came = f"draws from the density of {method}"
    require(draws.log_proposal is None, asked, came, remedy)
    came = f"{draws.num_chains} × {draws.num_draws} networks of {method}"
    require(draws.num_draws > 1 and len(draws) >= _FEWEST_DRAWS, asked, came, remedy)
    remedy = "The rows were too many to keep; fit again with fewer."
    require(opened.has_training_rows, "A run that a flow learns from must hold its training rows", "none", remedy)
