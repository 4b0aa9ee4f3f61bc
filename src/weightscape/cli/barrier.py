"""`weightscape barrier`: how far the loss rises between the best networks of two runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import equinox as eqx
import jax
import numpy as np
import typer

from weightscape import geometry
from weightscape.cli.opened_run import OpenedRun, open_run
from weightscape.cli.options import OutFolder, Quiet, Seed
from weightscape.cli.path_loss import PathLoss, best_network, path_losses
from weightscape.cli.result_folder import result_folder, write_result
from weightscape.cli.screen import Screen
from weightscape.core import PRNGKey
from weightscape.core.checks import require
from weightscape.draws import Draws
from weightscape.geometry import Barrier
from weightscape.geometry.weight_moments import header_of
from weightscape.posterior import Parameters
from weightscape.report import Picture, Report, Table, plot_barriers, plot_section
from weightscape.report.describe import described
from weightscape.report.numbers import shown
from weightscape.symmetry import Symmetry, symmetry_of

_LOSS = "mean negative log likelihood"

FirstRun = Annotated[Path, typer.Argument(metavar="RUN_A", help="A folder that `weightscape fit` wrote.")]
SecondRun = Annotated[Path, typer.Argument(metavar="RUN_B", help="Another one, of the same network.")]
Bend = Annotated[bool, typer.Option("--bend", help="Look for a path with one bend, too.")]
WithSection = Annotated[bool, typer.Option("--section", help="Draw the plane of A, B and B re-based onto A.")]
NumPoints = Annotated[int, typer.Option("--points", min=3, help="Networks along each path.")]

Paths = dict[str, geometry.Path]
Barriers = dict[str, dict[str, Barrier]]
"""By the name of the rows, and then of the path."""


def barrier(
    run_a: FirstRun,
    run_b: SecondRun,
    bend: Bend = False,
    section: WithSection = False,
    points: NumPoints = 25,
    out: OutFolder = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Follow the loss from the best draw of one run to the best draw of another, along several paths.

    Losses are those of the rows of RUN_A, seen in its scaling.

    Example: weightscape barrier runs/first runs/second --bend --section
    """
    screen, folder = Screen(quiet), result_folder(out, run_a, f"{run_b.name or 'other'}-barrier")
    one, other = open_run(run_a), open_run(run_b)
    _require_two_runs(one, other)
    losses, ends = path_losses(one), (best_network(one.draws), best_network(other.draws))
    symmetry = _symmetry(one.draws, ends[0])
    asked, remedy = "A network in a `--section` must have units that may change places", "Leave `--section` out."
    require(bool(symmetry.groups) or not section, asked, "none", remedy)
    key = jax.random.key(seed)
    paths = _paths(key, symmetry, ends)
    if bend:
        key_bend = jax.random.fold_in(key, 1)
        paths["one bend"] = geometry.train_bend(key_bend, next(iter(losses.values())), *ends)
    found = _barriers(losses, paths, points)
    sections = _sections(losses, paths, points) if section else ()
    report = _report(one, other, found, sections)
    result = {"run_a": str(run_a), "run_b": str(run_b), "seed": seed, "same_scaling": _same_scaling(one, other)}
    page = write_result(folder, "barrier", {**result, "barriers": _result(found)}, report)
    screen.show(report.tables[0])
    screen.say(f"{report.summary} The report:")
    screen.path(page)


def _require_two_runs(one: OpenedRun, other: OpenedRun) -> None:
    apart = one.folder.resolve() != other.folder.resolve()
    remedy = "Fit again with another `--seed` and `--out`."
    require(apart, "RUN_A and RUN_B must be two runs", "one", remedy)
    first, second = one.draws, other.draws
    shapes = [[np.shape(leaf)[2:] for leaf in jax.tree.leaves(draws.params)] for draws in (first, second)]
    alike = jax.tree.structure(first.params) == jax.tree.structure(second.params) and shapes[0] == shapes[1]
    alike = alike and bool(eqx.tree_equal(first.model.network, second.model.network))
    came = " and ".join(f"{described(draws.model.network)} on {draws.example.x.shape[1:]}" for draws in (first, second))
    require(alike, "RUN_A and RUN_B must have the same network", came, "Fit both with the same options.")


def _same_scaling(one: OpenedRun, other: OpenedRun) -> bool:
    return bool(eqx.tree_equal(one.draws.scaling, other.draws.scaling))


def _symmetry(draws: Draws, params: Parameters) -> Symmetry:
    """Of the network alone; what a likelihood infers stays where it is."""
    function = lambda params, x: (draws.model.network.apply(params.network, x), params.likelihood)
    return symmetry_of(function, params, header_of(draws).standardised_example())


def _paths(key: PRNGKey, symmetry: Symmetry, ends: tuple[Parameters, Parameters]) -> Paths:
    paths: Paths = {"linear": geometry.Linear(*ends), "re-based": geometry.rebased(key, symmetry, *ends)}
    if symmetry.num_scales:
        paths["geodesic"] = geometry.geodesic(key, symmetry, *ends)
    return paths


def _ends(path: geometry.Path) -> tuple[Parameters, Parameters]:
    assert isinstance(path, geometry.Linear)
    return path.start, path.end


def _barriers(losses: Mapping[str, PathLoss], paths: Paths, points: int) -> Barriers:
    return {
        rows: {name: geometry.barrier(path, loss, num_points=points) for name, path in paths.items()}
        for rows, loss in losses.items()
    }


def _sections(losses: Mapping[str, PathLoss], paths: Paths, points: int) -> tuple[Picture, ...]:
    start, end = _ends(paths["linear"])
    plane = geometry.Plane.through(start, end, _ends(paths["re-based"])[1])
    rows, loss = next(iter(losses.items()))
    figure = plot_section(geometry.section(loss, plane, num_points=points), ("A", "B", "B re-based"), loss_label=_LOSS)
    caption = (
        f"On the {rows}. Valleys that run from A to B re-based and not to B are what symmetry alone had put apart."
    )
    return (Picture("section", "The plane of three networks", caption, figure),)


def _report(one: OpenedRun, other: OpenedRun, found: Barriers, sections: tuple[Picture, ...]) -> Report:
    table = Table(f"Barriers between {one.folder.name} and {other.folder.name}", *_cells(found))
    caption = "Dotted: the line between the losses of both ends. The barrier is the largest rise above it."
    pictures = tuple(
        Picture(
            f"barriers-{rows.partition(' ')[0]}",
            f"Loss on the {rows}",
            caption,
            plot_barriers(by_path, loss_label=_LOSS),
        )
        for rows, by_path in found.items()
    )
    settings = {"RUN_A": str(one.folder), "RUN_B": str(other.folder), "network": described(one.draws.model.network)}
    return Report(table.title, _finding(one, other, found), (table,), (*pictures, *sections), settings)


def _cells(found: Barriers) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    names = tuple(next(iter(found.values())))
    value = lambda one: (shown(float(one.value)), shown(float(one.at)))
    rows = tuple((name, *(cell for by_path in found.values() for cell in value(by_path[name]))) for name in names)
    return ("path", *(column for part in found for column in (f"barrier, {part}", "at t"))), rows


def _finding(one: OpenedRun, other: OpenedRun, found: Barriers) -> str:
    rows, by_path = next(iter(found.items()))
    values = {name: float(barrier.value) for name, barrier in by_path.items()}
    told = (
        f"On the {rows} the barrier is {shown(values['linear'])}, and {shown(values['re-based'])} once B is re-based."
    )
    if _same_scaling(one, other):
        return told
    return f"{told} B was fitted in another scaling of its data; here it sees that of A."


def _result(found: Barriers) -> dict[str, Any]:
    as_lists = lambda barrier: {name: np.asarray(part, float).tolist() for name, part in barrier._asdict().items()}
    return {rows: {name: as_lists(barrier) for name, barrier in by_path.items()} for rows, by_path in found.items()}
