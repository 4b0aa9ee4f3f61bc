"""`weightscape compare`: several methods on one data set, beside baselines and a reference, in one table and page."""

import time
from pathlib import Path
from typing import Annotated

import typer

from weightscape.cli.choose import ModelOptions, choose_model
from weightscape.cli.compare_page import judge, scorable, write_comparison
from weightscape.cli.contenders import Asked, choose_contenders, run_contenders
from weightscape.cli.fit import (
    Activation,
    Data,
    Heteroscedastic,
    Hidden,
    Ignore,
    Noise,
    PriorScale,
    Resume,
    Target,
    Task,
    TestFraction,
)
from weightscape.cli.method_settings import listed
from weightscape.cli.options import MethodSetting, OutFolder, ProgressName, Quiet, Seed
from weightscape.cli.result_folder import result_folder
from weightscape.cli.screen import Screen
from weightscape.cli.source import Request, load_source
from weightscape.core.checks import require, require_known
from weightscape.report.numbers import duration

FAILED = 1
"""The exit code where a method failed and the others are told of all the same."""

_METHODS = "map,ensemble,laplace,vi,sghmc,hmc"
_BASELINES = "gp,trees"
_NONE = "none"
_GOLD_STANDARD = "hmc"

Methods = Annotated[str, typer.Option(help="Methods to compare: hmc, ensemble, laplace, vi, sghmc, flow, …")]
Baselines = Annotated[str, typer.Option(help="gp (a Gaussian process), trees (gradient-boosted), or none.")]
ReferenceName = Annotated[
    str | None, typer.Option("--reference", metavar="METHOD", help="Distances are to this one: hmc, or none.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Run all anew, finished or not.")]


def compare(  # noqa: PLR0913  the options of a command are its arguments
    source: Data,
    target: Target = None,
    task: Task = None,
    ignore: Ignore = None,
    methods: Methods = _METHODS,
    baselines: Baselines = _BASELINES,
    reference: ReferenceName = None,
    out: OutFolder = None,
    hidden: Hidden = "16",
    activation: Activation = "tanh",
    prior_scale: PriorScale = 1.0,
    noise: Noise = None,
    heteroscedastic: Heteroscedastic = False,
    test_fraction: TestFraction = 0.2,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    resume: Resume = False,
    set_: MethodSetting = None,
    progress: ProgressName = "bar",
    quiet: Quiet = False,
) -> None:
    """Compare methods on a data set: scores, calibration, distance to a reference, and cost.

    Finished runs in the folder are taken as they are. Ends with code 1 where a method failed.

    Example: weightscape compare digits --methods hmc,ensemble,laplace,vi,sghmc --reference hmc
    """
    began, screen = time.monotonic(), Screen(quiet, progress)
    folder = result_folder(out or Path("runs") / f"compare-{Path(source).stem}", Path(source), "compare")
    dataset = load_source(Request(source, target, task, tuple(ignore or ()), test_fraction, seed))
    model = choose_model(dataset, ModelOptions(hidden, activation, prior_scale, noise, heteroscedastic))
    asked = Asked(_methods(methods), _baselines(baselines), tuple(set_ or ()), Path(source).name, seed)
    contenders = choose_contenders(dataset, model, asked)
    chosen = _reference(reference, tuple(contenders))
    screen.say(f"{dataset}\n{len(contenders)} contenders{f', compared with {chosen}' if chosen else ''}:")
    outcome = run_contenders(contenders, folder, screen, overwrite=overwrite, resume=resume)
    outcome = scorable(outcome, dataset.test.y)
    comparison = judge(dataset, contenders, outcome, chosen, seed)
    page = write_comparison(folder, comparison, dataset, model, asked)
    screen.show(comparison.brief)
    screen.say(f"{comparison.finding}\nTook {duration(time.monotonic() - began)}. The report:")
    screen.path(page)
    if outcome.failures:
        raise typer.Exit(FAILED)


def _methods(text: str) -> tuple[str, ...]:
    names = listed("--methods", text)
    require(bool(names), "`--methods` must name at least one method", repr(text), f"Pass {_METHODS}, say.")
    return names


def _baselines(text: str) -> tuple[str, ...]:
    return () if text == _NONE else listed("--baselines", text)


def _reference(name: str | None, known: tuple[str, ...]) -> str | None:
    """What was asked for, HMC where nothing was and it takes part, or None."""
    if name is None:
        return _GOLD_STANDARD if _GOLD_STANDARD in known else None
    if name == _NONE:
        return None
    require_known("`--reference`", name, known)
    return name
