"""Posteriors of networks drawn by flows that know their density: how exact they are, and their evidence.

    python -m experiments.exact_posterior FOLDER CASE [--ideas "NAME;NAME"] [--steps N] [--stages judge,weigh,...]

CASE is small, iris, breast_cancer or mnist (WEIGHTSCAPE_DATA names mnist's folder). The reference chains, the training
of every idea and the ladder go on where they were stopped. Each stage of each idea is printed and kept at once in
FOLDER/CASE/results.json, and all rows are written as a table to FOLDER/CASE/table.md.
"""

import argparse
import datetime
import json
from pathlib import Path
from typing import Any

import jax
from experiments.exact import bench, stages
from experiments.exact.settings import CASES, IDEAS

from weightscape.core.files import read_json, write_json, write_text

_COLUMNS = ("idea", "num_steps", "train_seconds", "J", "J_error", "spread_p", "spread_q", "weights_efficiency")


def main() -> None:
    asked = _arguments()
    case, folder = CASES[asked.case], Path(asked.folder) / asked.case
    for idea in asked.ideas.split(";"):
        trained = bench.train(folder, case, idea, asked.steps)
        print(trained.draws.health, flush=True)
        row = {"idea": idea, "date": str(datetime.date.today()), "device": jax.devices()[0].device_kind}
        row |= {"num_steps": trained.flow.facts["num_steps"], "train_seconds": trained.flow.facts["seconds"]}
        for name, stage in stages.STAGES.items():
            if name in asked.stages.split(","):
                found = stage(trained)
                print(json.dumps({"idea": idea, "stage": name, **found}), flush=True)
                row |= found
                _keep(folder, row)


def _keep(folder: Path, row: dict[str, Any]) -> None:
    """The rows of all ideas, with this one in the place of a former one of the same idea and steps."""
    path = folder / "results.json"
    same = lambda other: all(other.get(name) == row.get(name) for name in ("idea", "num_steps"))
    rows = [other for other in (read_json(path) if path.exists() else []) if not same(other)] + [row]
    write_json(path, rows)
    write_text(folder / "table.md", _table(rows))


def _table(rows: list[dict]) -> str:
    shown = lambda value: f"{value:.3g}" if isinstance(value, float) else str(value)
    lines = [" | ".join(("", *_COLUMNS, "")).strip(), "|" + "---|" * len(_COLUMNS)]
    lines += ["| " + " | ".join(shown(row.get(name, "")) for name in _COLUMNS) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("case", choices=sorted(CASES))
    parser.add_argument("--ideas", default=next(iter(IDEAS)))
    parser.add_argument("--steps", type=int)
    parser.add_argument("--stages", default=",".join(stages.STAGES))
    return parser.parse_args()


if __name__ == "__main__":
    jax.config.update("jax_default_matmul_precision", "highest")
    main()
