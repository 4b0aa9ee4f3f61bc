"""The thesis's three flows over trained networks, ours beside its tables.

    WEIGHTSCAPE_DATA=<mnist's folder> python -m experiments.thesis_flows FOLDER PROBLEM [CONFIGURATION ...]

PROBLEM is cancer (30-16-16-2 ReLU), mnist (784-10-10 ReLU) or small (a minute on two cores). The population is trained
and judged first, then the flow of each configuration that is named, or of all 24: three geometries × a field that
commutes with permutations or a plain one × aligned or not × independent pairs or optimal transport. Each result is
written as soon as it is there and not made again, so a run may be stopped at any time and repeated. `results.md` in
FOLDER/PROBLEM has the table of all that is done.

Smaller than the thesis: mnist's networks see 20,000 of the images. Guidance, conditions and transfer are not in it.
"""

import datetime
import sys
import time
from pathlib import Path

import jax
from experiments.thesis import judging, populations, tables
from experiments.thesis.settings import PROBLEMS, Configuration, Problem, configurations

import weightscape as ws
from weightscape.core.checks import require_known
from weightscape.core.files import read_json, write_json, write_text

BASELINES = "baselines"


def main(folder: Path, name: str, asked: list[str]) -> None:
    """Everything that is asked for and not there yet, and the table."""
    require_known("A problem of the thesis", name, PROBLEMS)
    for each in asked:
        require_known("A configuration", each, configurations())
    folder, problem = folder / name, PROBLEMS[name]
    split = populations.population(folder, problem)
    against = None
    for each in (BASELINES, *(asked or configurations())):
        if _file(folder, each).exists():
            continue
        against = judging.known(problem, split) if against is None else against
        if each == BASELINES:
            write_json(_file(folder, each), judging.baselines(problem, split, against))
        else:
            write_json(_file(folder, each), judged_flow(folder, problem, configurations()[each], split.train, against))
        report(folder, name)


def judged_flow(
    folder: Path, problem: Problem, configuration: Configuration, train: ws.Draws, against: judging.Known
) -> dict:
    """Train the flow of a configuration, draw networks, and judge them."""
    began, key = time.perf_counter(), jax.random.key(2)
    shown = populations.shown(train, problem, configuration)
    store = folder / "flows" / configuration.name
    flow = configuration.method(problem).run(key, problem.posterior(), draws=shown, store=store, resume=True)
    assert isinstance(flow, ws.PopulationFlow)
    trained = time.perf_counter()
    found = judging.judged(flow.sample(jax.random.key(3), problem.num_generated), against)
    told = {name: flow.facts[name][-1] for name in ("losses", "held_out_losses") if flow.facts[name]}
    seconds = {"training": round(trained - began, 1), "judging": round(time.perf_counter() - trained, 1)}
    return {**found, **told, "seconds": seconds}


def report(folder: Path, name: str) -> None:
    """The table of what is done, with how it was made."""
    results = read_json(_file(folder, BASELINES))
    done = {each: read_json(_file(folder, each)) for each in configurations() if _file(folder, each).exists()}
    device = f"{jax.devices()[0].device_kind}, jax {jax.__version__}"
    lines = [f"{datetime.date.today()}, {device}, `{name}`", "", *tables.table(name, results | done)]
    write_text(folder / "results.md", "\n".join(lines) + "\n")
    print("\n".join(lines), flush=True)


def _file(folder: Path, name: str) -> Path:
    return folder / "results" / f"{name}.json"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
