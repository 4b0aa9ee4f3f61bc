"""`weightscape flow` on a population: a flow over trained networks, and networks that it draws."""

import time
from pathlib import Path
from typing import NamedTuple

import jax

from weightscape.cli.flow_folder import FLOW, NETWORKS, begin_flow, clear_findings, keeping
from weightscape.cli.flow_given import CONDITIONS, answered_losses, answers_table
from weightscape.cli.flow_judged import Judged, finding, judge_population, population_result
from weightscape.cli.opened_run import OpenedRun, with_training_rows
from weightscape.cli.result_folder import write_result
from weightscape.cli.screen import Screen
from weightscape.core import PRNGKey
from weightscape.core.checks import require, require_known
from weightscape.flow import (
    Equivariant,
    Euclidean,
    FixedSteps,
    ForgetfulSteps,
    Geometric,
    Normalized,
    PopulationFlow,
    PopulationMatching,
    Revised,
    Solver,
)
from weightscape.inference import split_runs
from weightscape.inference.point import RunSplit
from weightscape.metanet import Sizes
from weightscape.report import Picture, Report, Table
from weightscape.report.describe import described
from weightscape.report.flow_training import plot_flow_training
from weightscape.report.numbers import duration, shown

EUCLIDEAN = "euclidean"
GEOMETRIES = {
    EUCLIDEAN: Euclidean(),
    "geometric": Geometric(),
    "geometric-with-shifts": Geometric(with_shifts=True),
    "normalized": Normalized(),
    "normalized-with-shifts": Normalized(with_shifts=True),
}
NUM_REVISIONS = 3
_HELD_OUT = 0.2
_NEEDS_NO_DATA = "Pass `--revisions 0` without `--given`, which needs no data, or fit again with fewer rows."


class Wanted(NamedTuple):
    """Where a flow over a population goes, how many networks it draws, its seed, and whether training goes on."""

    folder: Path
    num_draws: int
    seed: int
    resume: bool


def flow_over_population(opened: OpenedRun, method: PopulationMatching, wanted: Wanted, screen: Screen) -> None:
    """Train, draw, judge and report; networks are on disk before they are judged."""
    began, opened = time.monotonic(), _with_rows(opened, method, screen)
    store = begin_flow(wanted.folder, resume=wanted.resume)
    with keeping(store):
        judged = _made(jax.random.key(wanted.seed), opened, method, wanted, screen)
    told = {"run": str(opened.folder), "seed": str(wanted.seed), "time": duration(time.monotonic() - began)}
    report = population_report(judged, opened, told)
    result = {"run": str(opened.folder), "seed": wanted.seed, **population_result(judged)}
    path = write_result(wanted.folder, "flow", result, report)
    for table in report.tables:
        screen.show(table)
    screen.say(f"{report.summary}\nTook {told['time']}. The report:")
    screen.path(path)


def population_method(
    geometry: str, num_steps: int, sizes: Sizes, given: str | None, num_revisions: int, forgetting: float | None = None
) -> PopulationMatching:
    """Flow matching that two cores finish in minutes, for small networks.

    - `num_revisions`: how often the field looks at the data; 0 for one that does not.
    - `forgetting`: of the steps that draw; 0 for steps without noise, None for what fits the geometry.
    """
    require_known("`--geometry`", geometry, GEOMETRIES)
    if given is not None:
        require_known("`--given`", given, CONDITIONS)
    blind, looking = Equivariant(sizes, guided=False), Revised(sizes, num_revisions=max(1, num_revisions))
    return PopulationMatching(
        GEOMETRIES[geometry],
        num_steps=num_steps,
        batch_size=64,
        learning_rate=3e-3,
        average=0.995,
        architecture=looking if num_revisions else blind,
        solver=_steps(geometry, forgetting),
        conditions=None if given is None else CONDITIONS[given](),
    )


def population_report(judged: Judged, opened: OpenedRun, settings: dict[str, str]) -> Report:
    """The report of a flow over a population."""
    name, columns = opened.record.name, tuple(judged.scores["flow"])
    rows = tuple((row, *(shown(values[c]) for c in columns)) for row, values in judged.scores.items())
    together = Table(f"{name}: scores on the test rows", ("networks", *columns), rows)
    head = ("compared by", "flow", "held out", "ratio", "Z_U")
    cells = tuple((by, *(shown(value) for value in audit)) for by, audit in judged.audits.items())
    audit = Table(f"{name}: median distance to the nearest training network", head, cells)
    caption = "Where the loss of held-out runs rises, networks are learned by heart; the best moment is kept."
    training = Picture("training", "Training", caption, plot_flow_training(judged.flow.facts))
    told = {**settings, "flow": described(judged.flow.method)}
    tables = (together, audit, *([answers_table(name, judged.answers)] if judged.answers else []))
    return Report(f"A flow over networks of {name}", finding(judged, name), tables, (training,), told)


def _with_rows(opened: OpenedRun, method: PopulationMatching, screen: Screen) -> OpenedRun:
    """The run with its training rows, where the flow needs them: it must not learn from those that test it."""
    needed = method.architecture.looks_at_data or method.conditions is not None
    if opened.has_training_rows or not needed:
        return opened
    screen.say(f"Reading the training rows again from {opened.record.source}.")
    return with_training_rows(opened, _NEEDS_NO_DATA)


def _made(key: PRNGKey, opened: OpenedRun, method: PopulationMatching, wanted: Wanted, screen: Screen) -> Judged:
    """The flow and its networks, kept in the folder as soon as they are there, and what is to be said of them."""
    key_train, key_draws, key_answers = jax.random.split(key, 3)
    split, posterior = split_runs(opened.draws, _HELD_OUT), opened.posterior()
    flow = _trained(key_train, opened, method, split, wanted.folder, screen)
    whole = flow if method.conditions is None else flow.given(None)
    networks = whole.sample(key_draws, wanted.num_draws)
    networks.save(wanted.folder / NETWORKS)
    answers = {}
    if method.conditions is not None:
        answers = answered_losses(key_answers, flow, posterior, split.train, wanted.num_draws)
    return judge_population(whole, networks, split, opened, answers)


def _trained(
    key: PRNGKey, opened: OpenedRun, method: PopulationMatching, split: RunSplit, folder: Path, screen: Screen
) -> PopulationFlow:
    """The flow in the folder, gone on with where it was begun; findings of another are gone once it is trained."""
    train, held_out = split
    screen.say(f"{opened.dataset}\nTraining a flow on {len(train)} networks; {len(held_out)} are held out.")
    flow = method.run(
        key, opened.posterior(), draws=train, store=folder / FLOW, progress=screen.progress(), resume=True
    )
    assert isinstance(flow, PopulationFlow)
    clear_findings(folder)
    return flow


def _steps(geometry: str, forgetting: float | None) -> Solver:
    if forgetting is None:
        return ForgetfulSteps() if geometry == EUCLIDEAN else FixedSteps()
    fits = forgetting == 0 or geometry == EUCLIDEAN
    require(fits, f"`--forgetting` must be 0 where `--geometry` is {geometry}", forgetting, "Leave it out.")
    return ForgetfulSteps(forgetting=forgetting) if forgetting else FixedSteps()
