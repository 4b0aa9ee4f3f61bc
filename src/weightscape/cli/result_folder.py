"""Where a command that looks at a run writes its result and its page: a folder beside the run."""

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
    """Write `result.json` and the report, and return the path of its page."""
    write_json(folder / RESULT, {"command": command, "version": weightscape.__version__, **result})
    return write_report(report, folder)
