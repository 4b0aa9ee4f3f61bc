"""Where a command that looks at a run writes its result and its page: a folder beside the run."""

import math
from pathlib import Path
from typing import Any

import weightscape
from weightscape.cli.run_folder import RESULT, RUN, require_free
from weightscape.core.checks import require
from weightscape.core.files import write_json
from weightscape.report import Report, write_report


def result_folder(out: Path | None, run: Path, word: str, *, overwrite: bool = False) -> Path:
    """`out`, or the run's own name and `word`; it must not hold a run that was not meant to be replaced."""
    folder = out or run.parent / f"{run.name or run.resolve().name}-{word}"
    require_free(folder, overwrite=True)  # what is there may be replaced, unless it is a file or a run
    taken = not overwrite and (folder / RUN).exists()
    require(not taken, f"`{folder}` must not hold a run already", RUN, "Choose another folder with `--out`.")
    return folder


def write_result(folder: Path, command: str, result: dict[str, Any], report: Report) -> Path:
    """Write `result.json`, with null for numbers that are not finite, and the report; return the path of its page."""
    found = {"command": command, "version": weightscape.__version__, **result}
    write_json(folder / RESULT, _without_infinities(found))
    return write_report(report, folder)


def _without_infinities(value: Any) -> Any:
    """The same for JSON, which has no infinity: one number that overflows must not cost all the others."""
    if isinstance(value, dict):
        return {name: _without_infinities(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinities(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
