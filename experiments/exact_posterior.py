"""Posteriors of networks drawn by flows that know their density: how exact they are, and their evidence.

    python -m experiments.exact_posterior FOLDER CASE [--ideas NAME;NAME] [--steps N] [--stages judge,evidence,correct]

CASE is small, iris, breast_cancer or mnist (WEIGHTSCAPE_DATA names mnist's folder). The reference chains, the training
of every idea and the ladder go on where they were stopped. Each idea adds a row to FOLDER/CASE/results.json, and all
rows are written as a table to FOLDER/CASE/table.md.
"""

import argparse
import datetime
import json
from pathlib import Path

import jax
from experiments.exact import stages
from experiments.exact.settings import CASES, IDEAS

from weightscape.core.files import read_json, write_json, write_text

_COLUMNS = ("idea", "num_steps", "train_seconds", "J", "J_error", "spread_p", "spread_q", "weights_efficiency")


def main() -> None:
    asked = _arguments()
    case, folder = CASES[asked.case], Path(asked.folder) / asked.case
    results = folder / "results.json"
    draws = stages.reference(folder, case)
    print(draws.health, stages.chains(draws, case), flush=True)
    for idea in asked.ideas.split(";"):
        flow = stages.train(folder, case, idea, asked.steps)
        row = {"idea": idea, "date": str(datetime.date.today()), "device": jax.devices()[0].device_kind}
        if "judge" in asked.stages:
            row |= stages.judge(flow, draws, case.num_weighed)
        if "evidence" in asked.stages:
            row |= stages.evidence(flow, case, folder)
        if "correct" in asked.stages:
            row |= stages.correct(flow, case, draws)
        print(json.dumps(row), flush=True)
        write_json(results, [*(read_json(results) if results.exists() else []), row])
        write_text(folder / "table.md", _table(read_json(results)))


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
    parser.add_argument("--stages", default="judge,evidence,correct")
    return parser.parse_args()


if __name__ == "__main__":
    jax.config.update("jax_default_matmul_precision", "highest")
    main()
