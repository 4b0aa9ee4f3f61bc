"""The bar: progress on a terminal, and what a run reports to when nobody says."""

import math
import sys
from collections.abc import Mapping

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from weightscape.core.pace import Pace
from weightscape.core.progress import Progress, Silent


class Bar(Progress):
    """One line for each phase: a bar, the time it took, the time left, steps a second, and the facts.

    A step of a sampling phase is one draw of every chain; divergences are those of the whole phase so far.
    """

    def __init__(self, console: Console | None = None):
        self._console = console or Console(stderr=True)
        self._bar: RichProgress | None = None
        self._pace: Pace | None = None

    def start(self, label: str, total: int) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[facts]}"),
        )
        self._pace = Pace(label, total)
        self._bar = RichProgress(*columns, console=self._console)
        self._bar.add_task(label, total=total, facts="")
        self._bar.start()

    def advance(self, done: int, facts: Mapping[str, float]) -> None:
        if self._bar is not None and self._pace is not None:
            known = self._pace.advance(done, facts)
            rate = self._pace.per_second
            shown = [] if rate is None else [f"{rate:.3g}/s"]
            shown += [f"{name} {_written(value)}" for name, value in known.items()]
            self._bar.update(self._bar.task_ids[0], completed=done, facts="  ".join(shown))

    def finish(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = self._pace = None

    def seconds_left(self) -> float:
        return math.inf


def default_progress(progress: Progress | None = None) -> Progress:
    """`progress` itself, or a bar on a terminal, or silence elsewhere."""
    if progress is not None:
        return progress
    return Bar() if sys.stderr.isatty() else Silent()


def _written(value: int | float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
