"""`weightscape evidence`: which width and which prior do the data prefer, by every method that has an evidence."""

import dataclasses
import time
from pathlib import Path
from typing import Annotated, Any

import jax
import typer

import weightscape
from weightscape.cli.choose import MethodOptions, ModelOptions, choose_method, choose_model
from weightscape.cli.finish import finite
from weightscape.cli.fit import Activation, Data, Noise, Target, Task, TestFraction
from weightscape.cli.method_settings import listed, settings_by_method
from weightscape.cli.options import MethodSetting, OutFolder, ProgressName, Quiet, Seed
from weightscape.cli.run_folder import RESULT, require_free
from weightscape.cli.screen import Screen
from weightscape.cli.source import Request, load_source
from weightscape.core import InputError
from weightscape.core.checks import require
from weightscape.core.files import write_json
from weightscape.data import Dataset
from weightscape.evaluate import EvidenceRow, compare_evidence
from weightscape.inference import Method, ParallelTempering
from weightscape.posterior import Posterior
from weightscape.report import Candidate, Picture, Report, evidence_table, plot_evidence, write_report
from weightscape.report.evidence_finding import evidence_finding
from weightscape.report.numbers import duration

Widths = Annotated[str, typer.Option(help="Hidden units to compare, such as 2,4,8,16.")]
PriorScales = Annotated[str, typer.Option(help="Standard deviations of the normal prior to compare, such as 0.3,1,3.")]
Methods = Annotated[
    str, typer.Option(help="laplace, meanfieldvi, layerwisevi, normalizingflowvi, paralleltempering, flow, …")
]
NumDraws = Annotated[int, typer.Option("--draws", min=10, help="Draws of each density that are weighed.")]
Rows = tuple[EvidenceRow, ...]

_CHAINS_OF_A_FLOW = 16
"""Of which two are held out; they cost little more than four, side by side."""


def evidence(  # noqa: PLR0913  the options of a command are its arguments
    source: Data,
    target: Target = None,
    task: Task = None,
    widths: Widths = "2,4,8,16",
    prior_scales: PriorScales = "1",
    methods: Methods = "laplace,meanfieldvi",
    activation: Activation = "tanh",
    noise: Noise = None,
    draws: NumDraws = 1000,
    test_fraction: TestFraction = 0.2,
    set_: MethodSetting = None,
    out: OutFolder = None,
    seed: Seed = 0,
    progress: ProgressName = "bar",
    quiet: Quiet = False,
) -> None:
    """Compare models by their evidence log p(D), and write a table, a picture and a report.

    Example: weightscape evidence yacht --widths 2,4,8,16 --prior-scales 0.5,1,2
    """
    began, screen = time.monotonic(), Screen(quiet, progress)
    folder = out or Path("runs") / f"evidence-{Path(source).stem}"
    require_free(folder, overwrite=False)
    dataset = load_source(Request(source, target, task, (), test_fraction, seed))
    candidates = _candidates(widths, prior_scales)
    posteriors = {one.name: _posterior(dataset, one, activation, noise) for one in candidates}
    chosen = methods_by_name(methods, tuple(set_ or ()), next(iter(posteriors.values())))
    screen.say(f"{dataset}\n{len(candidates)} models by {len(chosen)} methods.")
    rows = compare_evidence(
        jax.random.key(seed), posteriors, chosen, test=dataset.test, num_draws=draws, progress=screen.progress()
    )
    facts = {"command": "evidence", "version": weightscape.__version__, "data": dataset.name, "seed": seed}
    write_json(folder / RESULT, {**facts, "rows": _result(rows)})
    settings = {"data": str(dataset), "methods": methods, "draws": str(draws), "seed": str(seed)}
    report = _report(dataset.name, candidates, rows, settings)
    page = write_report(report, folder)
    screen.show(report.tables[0])
    screen.say(f"{report.summary}\nTook {duration(time.monotonic() - began)}. The report:")
    screen.path(page)


def _report(name: str, candidates: list[Candidate], rows: Rows, settings: dict[str, str]) -> Report:
    table = evidence_table(f"{name}: the evidence of {len(candidates)} models", rows)
    caption = (
        "Circles are each method's own value, diamonds what its draws weigh to where that can be trusted, crosses "
        "what cannot be; bars are two standard errors. A good evidence rises with the score on unseen rows."
    )
    picture = Picture("evidence", "Evidence", caption, plot_evidence(candidates, rows))
    return Report(f"Evidence on {name}", evidence_finding(rows), (table,), (picture,), settings)


def _candidates(widths: str, scales: str) -> list[Candidate]:
    units = [int(value) for value in _numbers("--widths", widths)]
    spreads = _numbers("--prior-scales", scales)
    several = len(spreads) > 1
    name = lambda width, scale: f"{width} units, prior {scale:g}" if several else f"{width} units"
    return [Candidate(name(width, scale), width, scale) for scale in spreads for width in units]


def _posterior(dataset: Dataset, candidate: Candidate, activation: str, noise: str | None) -> Posterior:
    options = ModelOptions(str(candidate.width), activation, candidate.prior_scale, noise)
    return choose_model(dataset, options).condition(dataset.train)


def methods_by_name(text: str, settings: tuple[str, ...], posterior: Posterior) -> dict[str, Method]:
    """By name; a flow learns from a ladder of temperatures, since a mode that its draws miss is missing in p(D)."""
    names = listed("--methods", text)
    require(bool(names), "`--methods` must name at least one method", repr(text), "Pass laplace,meanfieldvi, say.")
    mine, chains = settings_by_method(settings, names), {"flow": _CHAINS_OF_A_FLOW}
    options = lambda name: MethodOptions(name, chains.get(name), None, None, mine[name], ParallelTempering)
    return {name: choose_method(posterior, options(name)).method for name in names}


def _numbers(option: str, text: str) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise InputError(f"`{option}` must be numbers, got {text!r}. Separate them by commas, as in 2,4,8.") from error
    good = bool(numbers) and all(number > 0 for number in numbers)
    require(good, f"`{option}` must be positive numbers", repr(text), "Separate them by commas, as in 2,4,8.")
    return numbers


def _result(rows: Rows) -> list[dict[str, Any]]:
    return [
        {
            **row._asdict(),
            "own": None if row.own is None else dataclasses.asdict(row.own),
            "weighed": None if row.weighed is None else finite(row.weighed._asdict()),
            "is_trusted": None if row.verdict is None else row.verdict.is_trusted,
        }
        for row in rows
    ]
