"""The folder of `weightscape flow`: a flow, networks that were drawn or corrected, and what was found of them.

Whatever is beside a flow belongs to it: it is removed before another flow takes its place.
"""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from weightscape.cli.errors import Stopped
from weightscape.cli.run_folder import FIGURES, RESULT, clear
from weightscape.report.write import PAGE

FLOW = "flow"
NETWORKS = "networks"
CORRECTED = "corrected"


def begin_flow(folder: Path, *, resume: bool) -> Path:
    """The store of a flow's training, empty unless that goes on; what was found of an earlier flow goes with it."""
    if not resume:
        clear_findings(folder)
        clear(folder / FLOW)
    return folder / FLOW


def clear_findings(folder: Path) -> None:
    """Remove all that an earlier command has left beside its flow: its result first, which speaks of the rest."""
    (folder / RESULT).unlink(missing_ok=True)
    # Pictures without their page may be anybody's.
    if (folder / PAGE).is_file():
        shutil.rmtree(folder / FIGURES, ignore_errors=True)
        (folder / PAGE).unlink()
    for inner in (NETWORKS, CORRECTED):
        clear(folder / inner)


@contextlib.contextmanager
def keeping(store: Path) -> Iterator[None]:
    """Say what an interruption has kept, and how to go on."""
    try:
        yield
    except KeyboardInterrupt as error:
        kept = f"The training so far is kept in `{store}`; repeat the command with `--resume` to go on."
        raise Stopped(f"Stopped. {kept}") from error
