"""`weightscape prune`: scores of a run against the share of weights that are kept."""

from typing import Annotated, Any

import jax
import typer

from weightscape import geometry
from weightscape.cli.finish import finite
from weightscape.cli.opened_run import open_run, with_fresh_draws
from weightscape.cli.options import OutFolder, ProgressName, Quiet, RunFolder, Seed
from weightscape.cli.rebase import NumDraws
from weightscape.cli.result_folder import result_folder, write_result
from weightscape.cli.screen import Screen
from weightscape.core import InputError
from weightscape.core.checks import require, require_known
from weightscape.evaluate import PruningRow, pruning_curve
from weightscape.evaluate.pruning import SHARES
from weightscape.geometry import ByMagnitude, BySignalToNoise, ByStandardDeviation, Centre
from weightscape.report import Picture, Report, plot_pruning, pruning_table
from weightscape.report.describe import describe_draws
from weightscape.report.numbers import score_name, shown

SCORES = {"sd": ByStandardDeviation, "snr": BySignalToNoise, "magnitude": ByMagnitude}
_MEANINGS = {"sd": "small standard deviations", "snr": "means large for their spread", "magnitude": "large means"}

ScoreName = Annotated[str, typer.Option("--by", help="Which weights stay: sd, snr or magnitude.")]
Shares = Annotated[str | None, typer.Option(help="Shares of weights to keep, such as 1,0.5,0.1.")]
Rebase = Annotated[bool, typer.Option("--rebase/--no-rebase", help="Re-base the draws onto their centre first.")]
Rows = tuple[PruningRow, ...]


def prune(  # noqa: PLR0913  the options of a command are its arguments
    run: RunFolder,
    by: ScoreName = "sd",
    shares: Shares = None,
    rebase: Rebase = True,
    draws: NumDraws = None,
    out: OutFolder = None,
    seed: Seed = 0,
    progress: ProgressName = "bar",
    quiet: Quiet = False,
) -> None:
    """Set ever more weights of a run to zero, and score what is left on the test rows.

    Example: weightscape prune runs/houses --by snr
    """
    require_known("`--by`", by, SCORES)
    kept = SHARES if shares is None else _shares(shares)
    screen, folder = Screen(quiet, progress), result_folder(out, run, "pruned")
    key_draws, key_match, key_scores = jax.random.split(jax.random.key(seed), 3)
    opened = with_fresh_draws(key_draws, open_run(run), draws)
    taken = opened.draws
    if rebase:
        taken = geometry.rebase(taken, Centre(), key=key_match, progress=screen.progress())
    rows = pruning_curve(key_scores, taken, opened.dataset.test, by=SCORES[by](), shares=kept)
    told = {"by": by, "rebased": "yes, onto their centre" if rebase else "no", "seed": str(seed)}
    report = _report(opened.record.name, by, rows, {**told, **describe_draws(taken)})
    result = {"run": str(run), "seed": seed, "by": by, "rebased": rebase, "rows": _result(rows)}
    page = write_result(folder, "prune", result, report)
    screen.show(report.tables[0])
    screen.say(f"{report.summary} The report:")
    screen.path(page)


def _shares(text: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise InputError(f"`--shares` must be numbers, got {text!r}. Separate them by commas, as in 1,0.5.") from error
    good = bool(found) and all(0 < share <= 1 for share in found)
    require(good, "`--shares` must be above 0 and at most 1", repr(text), "Separate them by commas, as in 1,0.5.")
    return found


def _report(name: str, by: str, rows: Rows, settings: dict[str, str]) -> Report:
    table = pruning_table(f"{name}: scores on the test rows, by the weights that are kept", rows)
    caption = (
        f"Weights with {_MEANINGS[by]} stay longest. Full lines average over all pruned networks, dashed ones are the "
        "pruned mean network alone."
    )
    picture = Picture("pruning", "Scores and weights kept", caption, plot_pruning({by: rows}))
    return Report(f"Pruning of {name}", _finding(rows), (table,), (picture,), settings)


def _finding(rows: Rows) -> str:
    """What is lost between the largest and the smallest share."""
    most, least = (choose(rows, key=lambda row: row.keep) for choose in (max, min))
    name = next(iter(most.samples))
    from_all = f"{shown(most.samples[name])} with {100 * most.keep:g} % of the weights"
    to_few = f"{shown(least.samples[name])} with {100 * least.keep:g} %"
    return f"On the test rows {score_name(name)} of the samples goes from {from_all} to {to_few}."


def _result(rows: Rows) -> list[dict[str, Any]]:
    return [
        {
            "keep": row.keep,
            "num_kept": row.num_kept,
            "samples": finite(dict(row.samples)),
            "mean_network": finite(dict(row.mean_network)),
        }
        for row in rows
    ]
