"""`weightscape rebase`: every draw of a run replaced by its equivalent closest to a reference, as a run of its own."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import jax
import numpy as np
import typer

from weightscape import geometry
from weightscape.cli.finish import finite
from weightscape.cli.opened_run import OpenedRun, open_run, with_fresh_draws
from weightscape.cli.options import OutFolder, ProgressName, Quiet, RunFolder, Seed
from weightscape.cli.result_folder import result_folder, write_result
from weightscape.cli.run_folder import DATA, clear, write_run
from weightscape.cli.screen import Screen
from weightscape.cli.weight_measures import measure_table, measure_weights
from weightscape.core import PRNGKey, Progress
from weightscape.core.checks import require, require_known
from weightscape.core.files import map_arrays, write_arrays
from weightscape.draws import Draws
from weightscape.geometry import ActivationMatching, Centre, FirstDraw, MovingMean, WeightMatching
from weightscape.inference import LINEARISED
from weightscape.report import Picture, Report, plot_marginals, plot_spread
from weightscape.report.describe import describe_draws
from weightscape.report.numbers import shown
from weightscape.symmetry import of_draws

REFERENCES = {"first": FirstDraw, "centre": Centre, "moving-mean": MovingMean}
MATCHINGS = {
    "weights": lambda opened: WeightMatching(),
    "activations": lambda opened: ActivationMatching(opened.draws.model.network, opened.inputs(_MOST_ROWS)),
}
_MOST_ROWS = 1024
_NUM_MARGINALS = 4
_LEAST_IN_LINE = 10

ReferenceName = Annotated[str, typer.Option("--reference", help="first (draw), centre or moving-mean.")]
MatchingName = Annotated[str, typer.Option("--matching", help="What is compared: weights or activations.")]
NumDraws = Annotated[int | None, typer.Option("--draws", min=2, help="New draws, where the run ended in a density.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a run that is in the folder.")]


def rebase(  # noqa: PLR0913  the options of a command are its arguments
    run: RunFolder,
    reference: ReferenceName = "first",
    matching: MatchingName = "weights",
    draws: NumDraws = None,
    out: OutFolder = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    progress: ProgressName = "bar",
    quiet: Quiet = False,
) -> None:
    """Re-base a run's draws, and write them as a run that `predict`, `report` and `prune` can read.

    Example: weightscape rebase runs/houses --reference centre --out runs/houses-rebased
    """
    require_known("`--reference`", reference, REFERENCES)
    require_known("`--matching`", matching, MATCHINGS)
    screen, folder = Screen(quiet, progress), result_folder(out, run, "rebased", overwrite=overwrite)
    same = folder.resolve() == run.resolve()
    require(not same, "`--out` must not be the run itself", f"`{folder}`", "Choose another folder.")
    key_draws, key_match, key_pairs = jax.random.split(jax.random.key(seed), 3)
    opened = with_fresh_draws(key_draws, open_run(run), draws)
    moved = move_draws(key_match, opened, reference, matching, screen.progress())
    names = {"reference": reference, "matching": matching}
    found = _measured(key_pairs, opened, moved, reference)
    report = _report(opened, moved, found, {**names, "seed": str(seed)})
    _write_run(folder, opened, moved.draws, names)
    page = write_result(folder, "rebase", {"run": str(run), "seed": seed, **names, **_result(found)}, report)
    screen.show(report.tables[0])
    screen.say(f"{report.summary} The report:")
    screen.path(page)


class Moved(NamedTuple):
    """The draws after re-basing, and how many transpositions each one took."""

    draws: Draws
    transpositions: np.ndarray


class _Found(NamedTuple):
    before: dict[str, float]
    after: dict[str, float]
    transpositions: dict[str, float]


def move_draws(key: PRNGKey, opened: OpenedRun, reference: str, matching: str, progress: Progress) -> Moved:
    """The draws of a run re-based; names as in `REFERENCES` and `MATCHINGS`."""
    draws, how = opened.draws, MATCHINGS[matching](opened)
    symmetry = of_draws(draws)
    remedy = "There is nothing to re-base."
    require(bool(symmetry.groups), "A run to re-base must have units that may change places", "none", remedy)
    elements = geometry.rebase_elements(
        draws, REFERENCES[reference](), symmetry, matching=how, key=key, progress=progress
    )
    after = symmetry.apply(draws, elements)
    facts = draws.facts.plus(rebased={"reference": reference, "matching": matching})
    if LINEARISED in facts:
        # Each draw has moved by an element of its own: the density of the run is not theirs.
        facts = facts.plus(**{LINEARISED: False})
    return Moved(dataclasses.replace(after, facts=facts), np.asarray(geometry.transpositions(elements)))


def _measured(key: PRNGKey, opened: OpenedRun, moved: Moved, reference: str) -> _Found:
    network = moved.draws.params.network
    place = _first if reference == "first" else _mean
    towards = jax.tree.map(place, network)
    posterior = opened.posterior() if opened.has_training_rows else None
    before, after = (measure_weights(key, taken, towards, posterior) for taken in (opened.draws, moved.draws))
    swaps = moved.transpositions
    counts = {"mean": float(swaps.mean()), "least": int(swaps.min()), "most": int(swaps.max())}
    return _Found(before, after, counts)


def _first(leaf: Any) -> np.ndarray:
    return np.asarray(leaf[0, 0], np.float64)


def _mean(leaf: Any) -> np.ndarray:
    return np.asarray(np.mean(np.asarray(leaf), axis=(0, 1), dtype=np.float64))


def _write_run(folder: Path, opened: OpenedRun, draws: Draws, names: dict[str, str]) -> None:
    clear(folder)
    told = f"onto {names['reference']}, by {names['matching']}"
    record = dataclasses.replace(opened.record, settings={**opened.record.settings, "re-based": told})
    write_run(folder, record, opened.dataset)
    # As they were: where training rows were not kept, the test rows stand for them in memory only.
    write_arrays(folder / DATA, map_arrays(opened.folder / DATA))
    draws.save(folder)


def _result(found: _Found) -> dict[str, Any]:
    return {
        "before": finite(found.before),
        "after": finite(found.after),
        "transpositions": found.transpositions,
    }


def _report(opened: OpenedRun, moved: Moved, found: _Found, settings: dict[str, str]) -> Report:
    name = opened.record.name
    spreads = {"before": geometry.moments(opened.draws), "after": geometry.moments(moved.draws)}
    caption = "Where the draws lay in several equivalent places, standard deviations fall once they share one."
    spread = Picture("spread", "Spread of the weights", caption, plot_spread(spreads))
    chosen = _most_gathered(spreads["before"], spreads["after"])
    pairs = (_lines(geometry.marginals(taken, chosen)) for taken in (opened.draws, moved.draws))
    caption = (
        "The weights whose variance fell most, a line for each chain of ten draws or more: what now agrees was apart "
        "by symmetry."
    )
    single = Picture("marginals", "Single weights", caption, plot_marginals(*pairs))
    table = measure_table(f"{name}: draws before and after re-basing", found.before, found.after)
    settings = {**settings, **describe_draws(moved.draws)}
    return Report(f"Re-based draws of {name}", _finding(opened, found), (table,), (spread, single), settings)


def _lines(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """One line for each chain; chains too short for a histogram, such as members of an ensemble, are one."""
    return {name: v if v.shape[1] >= _LEAST_IN_LINE else v.reshape(1, -1) for name, v in values.items()}


def _most_gathered(before: geometry.Moments, after: geometry.Moments) -> dict[str, list[int]]:
    """The weights whose variance fell most, as places by the path of their leaf."""
    fall = np.where(before.is_weight, before.variance - after.variance, -np.inf)
    chosen: dict[str, list[int]] = {}
    for at in np.argsort(-fall, kind="stable")[: min(_NUM_MARGINALS, int(before.is_weight.sum()))]:
        path = next(path for path in before.layout.paths if at in _range(before.layout.places(path)))
        chosen.setdefault(path, []).append(int(at - before.layout.places(path).start))
    return chosen


def _range(places: slice) -> range:
    return range(places.start, places.stop)


def _finding(opened: OpenedRun, found: _Found) -> str:
    swaps = found.transpositions
    before, after = found.before["total_variance"], found.after["total_variance"]
    told = (
        f"Units changed places by {shown(swaps['mean'])} transpositions a draw ({swaps['least']} to {swaps['most']}); "
        f"the total variance went from {shown(before)} to {shown(after)}."
    )
    if not opened.draws.facts.get(LINEARISED, False):
        return f"{told} Predictions are those of the run."
    return f"{told} The run predicts by its linearised network; these draws predict by the networks drawn."
