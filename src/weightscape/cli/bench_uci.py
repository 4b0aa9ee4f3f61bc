"""`weightscape bench uci`: methods on the standard splits of the UCI regression sets.

Every method gets the same model: one hidden layer of tanh units, a normal prior, and a noise scale that is inferred.
Each split is standardised by its own training rows; scores are in the target's original units.
"""

import contextlib
import functools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from weightscape.cli.bench_trials import TRIALS, Trial, kept_scores, run_trial
from weightscape.cli.choose import ModelOptions, choose_model
from weightscape.cli.conduct import STARTS
from weightscape.cli.errors import Stopped
from weightscape.cli.evidence import methods_by_name
from weightscape.cli.fit import Activation, Heteroscedastic, Hidden, PriorScale, Resume
from weightscape.cli.options import MethodSetting, OutFolder, ProgressName, Quiet, Seed
from weightscape.cli.result_folder import write_result
from weightscape.cli.run_folder import require_free
from weightscape.cli.screen import Screen
from weightscape.core.checks import require, require_known
from weightscape.core.files import write_text
from weightscape.data.uci import BENCHMARKS, load_uci
from weightscape.evaluate.evidence_progress import NamedPhases
from weightscape.evaluate.splits import SplitScores
from weightscape.report.describe import described
from weightscape.report.numbers import duration, shown
from weightscape.report.splits import report_splits, splits_result, splits_text

Sets = Annotated[str, typer.Option(help="UCI sets, separated by commas; `weightscape data` lists them.")]
Methods = Annotated[str, typer.Option(help="Methods to compare: hmc, nuts, mclmc, ensemble, laplace, vi, …")]
Splits = Annotated[int, typer.Option(min=1, max=20, help="How many of the 20 standard splits, from the first.")]
Reference = Annotated[str, typer.Option(help="The method that differences in NLL are taken to.")]
Starts = Annotated[
    list[str] | None,
    typer.Option("--start", metavar="METHOD=WHERE", help="Where its chains start: network, prior, map or ensemble."),
]

_SETTINGS = (
    "hmc.num_chains=4",
    "hmc.num_warmup=400",
    "hmc.num_draws=150",
    "hmc.num_leapfrog=256",
    "mclmc.num_chains=8",
    "mclmc.num_warmup=5000",
    "mclmc.num_draws=100",
    "mclmc.thin=100",
    "nuts.num_chains=8",
    "nuts.num_warmup=150",
    "nuts.num_draws=50",
    "nuts.max_depth=8",
    "laplace.structure=full",
)
"""Of the methods where the suite differs from their defaults; `--set` comes after them. Where noise is small the
posterior is stiff: chains need many small steps.
"""

_STARTS = {"mclmc": "ensemble", "nuts": "ensemble"}
"""Where chains start, where it is not at the network's own weights."""

_DOUBLE = ("laplace",)
"""Methods that run in double precision: where noise is small, rounding leaves no definite curvature in single."""


_Kept = dict[tuple[str, int, str], SplitScores]
"""Rows by data set, split and method."""


class _Suite(NamedTuple):
    """All trials in order, and the names of their sets and methods."""

    trials: tuple[Trial, ...]
    sets: tuple[str, ...]
    methods: tuple[str, ...]


def uci(  # noqa: PLR0913  the options of a command are its arguments
    sets: Sets = "yacht,concrete,energy,boston,wine_red",
    methods: Methods = "hmc,mclmc,ensemble,laplace",
    splits: Splits = 20,
    reference: Reference = "ensemble",
    hidden: Hidden = "50",
    activation: Activation = "tanh",
    prior_scale: PriorScale = 1.0,
    heteroscedastic: Heteroscedastic = False,
    set_: MethodSetting = None,
    start: Starts = None,
    out: OutFolder = None,
    resume: Resume = False,
    seed: Seed = 0,
    progress: ProgressName = "bar",
    quiet: Quiet = False,
) -> None:
    """Score methods on the standard splits of UCI sets: RMSE, NLL, coverage, and paired differences in NLL.

    Example: weightscape bench uci --sets yacht,boston --splits 5 --out runs/uci --resume
    """
    screen, folder = Screen(quiet, progress), out or Path("runs/bench-uci")
    options = ModelOptions(hidden, activation, prior_scale, None, heteroscedastic)
    suite = _suite(sets, methods, splits, options, (tuple(set_ or ()), tuple(start or ()), seed))
    require_known("`--reference`", reference, suite.methods)
    kept = _kept(folder, suite.trials, resume=resume)
    screen.say(f"{len(suite.trials)} trials, of which {len(kept)} are there already.")
    rows = _run(folder, suite.trials, kept, screen)
    report = report_splits(rows, reference, _described(suite))
    facts = {"sets": list(suite.sets), "methods": list(suite.methods), "reference": reference, "seed": seed}
    write_text(folder / "table.md", splits_text(report))
    page = write_result(folder, "bench uci", {**facts, **splits_result(rows, reference)}, report)
    for table in report.tables:
        screen.show(table)
    screen.say(f"{report.summary} The report:")
    screen.path(page)


def _suite(
    sets: str, methods: str, splits: int, options: ModelOptions, given: tuple[tuple[str, ...], tuple[str, ...], int]
) -> _Suite:
    settings, starts, seed = given
    names = _names("--sets", sets)
    for name in names:
        require_known("A set of `--sets`", name, BENCHMARKS)
    asked = _names("--methods", methods)
    mine = tuple(each for each in _SETTINGS if each.partition(".")[0] in asked)
    where = {**{name: _STARTS.get(name, "network") for name in asked}, **_starts(starts, asked)}
    trials = []
    for name in names:
        dataset = load_uci(name)
        model = choose_model(dataset, options)
        chosen = methods_by_name(",".join(asked), (*mine, *settings), model.condition(dataset.train))
        for split in range(min(splits, BENCHMARKS[name].num_splits)):
            for each, method in chosen.items():
                trials.append(Trial(name, split, each, model, method, where[each], each in _DOUBLE, seed))
    return _Suite(tuple(trials), names, asked)


def _starts(texts: tuple[str, ...], methods: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in texts:
        method, _, where = text.partition("=")
        require_known("The method of `--start METHOD=WHERE`", method, methods)
        require_known("The place of `--start METHOD=WHERE`", where, STARTS)
        found[method] = where
    return found


def _kept(folder: Path, trials: tuple[Trial, ...], *, resume: bool) -> _Kept:
    """The trials that are there already; all are looked at before the first new one is run."""
    require_free(folder, overwrite=True)
    taken = any((folder / TRIALS).glob("*.json"))
    remedy = "Pass `--resume` to go on with them, or another `--out`."
    require(resume or not taken, f"`{folder}` must not hold trials already", TRIALS, remedy)
    found = {(trial.data, trial.split, trial.name): kept_scores(folder, trial) for trial in trials}
    return {key: row for key, row in found.items() if row is not None}


def _run(folder: Path, trials: tuple[Trial, ...], kept: _Kept, screen: Screen) -> tuple[SplitScores, ...]:
    rows, began, done = [], time.monotonic(), 0
    with _keeping(folder):
        for i, trial in enumerate(trials):
            row = kept.get((trial.data, trial.split, trial.name))
            if row is None:
                shown_progress = NamedPhases(f"{i + 1} of {len(trials)}, {trial.label}", screen.progress())
                load = functools.partial(load_uci, trial.data, split=trial.split)
                row = run_trial(folder, trial, load, shown_progress)
                done += 1
                left = (time.monotonic() - began) / done * (len(trials) - len(kept) - done)
                screen.say(f"{_line(row)}; about {duration(left)} left")
            rows.append(row)
    return tuple(rows)


def _line(row: SplitScores) -> str:
    label = f"{row.data} {row.split:2d} {row.method}"
    if row.failure is not None:
        return f"{label}: failed: {row.failure}"
    rmse, nll, coverage = (shown(row.scores[name]) for name in ("rmse", "nll", "coverage_90"))
    return f"{label}: RMSE {rmse}, NLL {nll}, 90 % coverage {coverage}, {duration(row.seconds)}"


def _names(option: str, text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    require(bool(names), f"`{option}` must name at least one", repr(text), "Separate them by commas.")
    return names


def _described(suite: _Suite) -> dict[str, str]:
    """The settings of the first trial of each method; sets of many rows have batches of their own."""
    first = suite.trials[0]
    told = {
        "network": described(first.model.network),
        "prior of the weights": described(first.model.prior),
        "likelihood": described(first.model.likelihood),
        "scaling": "inputs and targets standardised by the training rows of each split; scores in original units",
        "seed": str(first.seed),
    }
    for trial in suite.trials[: len(suite.methods)]:
        precision = "double" if trial.double else "single"
        told[trial.name] = f"{described(trial.method)}, from {trial.start}, in {precision} precision"
    return told


@contextlib.contextmanager
def _keeping(folder: Path) -> Iterator[None]:
    """Say what an interruption has kept, and how to go on."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise Stopped(f"Stopped. Trials so far are kept in `{folder}`; repeat with `--resume` to go on.") from error
