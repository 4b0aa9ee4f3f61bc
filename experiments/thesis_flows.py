"""The thesis's three flows over trained networks, ours beside its tables.

    WEIGHTSCAPE_DATA=<folder of the images> python -m experiments.thesis_flows FOLDER PROBLEM [NAME ...]

PROBLEM is cancer (30-16-16-2 ReLU, for two cores), mnist (784-10-10), diverse (the same with less decay, longer
training and images moved by a pixel, for networks that differ more), modest (the same for two cores and half an hour),
deep (784-32-32-10), modest-deep (the same for two cores), digits (64-10-10, for two cores) or small (a minute on two
cores).

The population is trained, then what is named is made, or all of it: configurations (three geometries × a field that
commutes with permutations, one that sees the data too, or a plain one × aligned or not × independent pairs or optimal
transport; `-long` ones train larger fields) and, for ten hidden units, stages (`experiments.thesis.stages`).
`population` is the judgement of the population itself, and of what needs no flow. Each result is written as soon as it
is there and not made again, so a run may be stopped at any time and repeated. `results.md` in FOLDER/PROBLEM has all
tables.
"""

import datetime
import sys
import time
from pathlib import Path

import jax
import numpy as np
from experiments.thesis import judging, populations, tables
from experiments.thesis.settings import PROBLEMS, configurations
from experiments.thesis.stage import Stage, trained
from experiments.thesis.stages import JUDGED, STAGES, stages_of

from weightscape.core.checks import InputError, require_known
from weightscape.core.files import read_json, write_json, write_text

POPULATION = "population"


def main(folder: Path, name: str, asked: list[str]) -> None:
    """Everything that is asked for and not there yet, and the tables."""
    require_known("A problem of the thesis", name, PROBLEMS)
    everything = (*configurations(), *stages_of(PROBLEMS[name]))
    for each in asked:
        require_known("What is asked for", each, (POPULATION, *everything))
    folder, problem = folder / name, PROBLEMS[name]
    stage = None
    for each in asked or (POPULATION, *everything):
        if _file(folder, each).exists():
            continue
        if stage is None:
            split = populations.population(folder, problem)
            stage = Stage(folder, problem, split, judging.known(folder, problem, split))
        began = time.perf_counter()
        write_json(_file(folder, each), {"results": _made(stage, each), "seconds": time.perf_counter() - began})
        report(folder, name)
        jax.clear_caches()  # the programs of some thirty flows are more than a process may map


def judged_flow(stage: Stage, name: str) -> dict:
    """Train the flow of a configuration, draw networks, and judge them."""
    began = time.perf_counter()
    flow = trained(stage.folder, stage.problem, configurations()[name], stage.split.train)
    ended = time.perf_counter()
    networks = flow.sample(jax.random.key(3), stage.problem.num_generated)
    seconds = {"training": round(ended - began, 1), "drawing": round(time.perf_counter() - ended, 1)}
    np.savez(stage.folder / f"{name}.npz", **judging.beside_nearest(networks, stage.against))
    told = {each: flow.facts[each][-1] for each in ("losses", "held_out_losses") if flow.facts[each]}
    return {**judging.judged(networks, stage.against), **told, "parts": seconds}


def report(folder: Path, name: str) -> None:
    """The tables of what is done, with how they were made."""
    found = lambda each: read_json(_file(folder, each))["results"] if _file(folder, each).exists() else {}
    device = f"{jax.devices()[0].device_kind}, jax {jax.__version__}"
    known = found(POPULATION)
    rows = known | {key: value for each in configurations() for key, value in found(each).items()}
    lines = [f"{datetime.date.today()}, {device}, `{name}`", "", *tables.table(name, rows, known)]
    for each in STAGES:
        if found(each):
            against = known if each in JUDGED else None
            lines += ["", f"### {each}", "", *tables.table("", found(each), against)]
    write_text(folder / "results.md", "\n".join(lines) + "\n")
    print("\n".join(lines), flush=True)


def _made(stage: Stage, name: str) -> dict:
    """Results by the name of their row."""
    if name == POPULATION:
        return judging.baselines(stage.problem, stage.split, stage.against)
    try:
        return STAGES[name](stage) if name in STAGES else {name: judged_flow(stage, name)}
    except InputError as refusal:  # of a geometry that does not fit the population; the others go on
        print(f"{name}: {refusal}", flush=True)
        return {}


def _file(folder: Path, name: str) -> Path:
    return folder / "results" / f"{name}.json"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
